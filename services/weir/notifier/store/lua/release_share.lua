-- The owner of an SMP server gives up its share of one partition: its session counts as ended.
-- KEYS 1 the server's share
-- ARGV 1 edge:epoch, 2 mark of no session, 3 '1' on a retry (makes no difference)
-- Answers 0 OK.
-- include: status
-- include: works_when_full
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return OK end
redis.call('HDEL', KEYS[1], 'o', 'u')
redis.call('HSET', KEYS[1], 'd', ARGV[2])
return OK
