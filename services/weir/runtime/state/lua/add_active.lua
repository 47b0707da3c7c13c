-- Adds queues in use to the sketch of a period. A sketch takes at most 12 KB, however many queues it counts.
-- KEYS 1 sketch (HyperLogLog)
-- ARGV 1 Unix time at which the sketch expires, 2 … hashes of queues, last: '1' on a retry (makes no difference)
-- Answers 1.
-- include: works_when_full
redis.call('PFADD', KEYS[1], unpack(ARGV, 2, #ARGV - 1))
redis.call('EXPIREAT', KEYS[1], ARGV[1])
return 1
