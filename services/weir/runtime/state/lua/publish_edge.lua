-- Publishes the gauges of an edge.
-- KEYS 1 the edge's gauges, 2 list of edges by the time of their last report
-- ARGV 1 gauges (JSON), 2 seconds that the gauges are kept, 3 edge, 4 now (Unix time), 5 '1' on a retry (makes no difference)
-- Answers 1.
-- include: works_when_full
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[3])
return 1
