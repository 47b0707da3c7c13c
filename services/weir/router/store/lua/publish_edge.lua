-- Publishes the gauges of an edge, and removes edges from the list that have not reported for a while.
-- KEYS 1 the edge's gauges, 2 list of edges by the time of their last report
-- ARGV 1 gauges (JSON), 2 milliseconds that the gauges are kept, 3 edge, 4 now, 5 oldest report to keep (Unix times),
--      6 '1' on a retry (makes no difference)
-- Answers 1.
-- include: works_when_full
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, ARGV[5])
return 1
