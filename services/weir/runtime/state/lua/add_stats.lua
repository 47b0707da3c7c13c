-- Adds an edge's counters to the counters of the fleet, exactly once.
-- KEYS 1 statistics, 2 the id of the edge's last operation
-- ARGV 1 operation id, 2 now (Unix time), 3 … name, delta, last: '1' on a retry
-- Answers 1, or 0 when the first attempt of this operation has added them.
-- include: works_when_full
if ARGV[#ARGV] == '1' and redis.call('GET', KEYS[2]) == ARGV[1] then return 0 end
redis.call('HSETNX', KEYS[1], 'fromTime', ARGV[2])
for n = 3, #ARGV - 1, 2 do redis.call('HINCRBY', KEYS[1], ARGV[n], ARGV[n + 1]) end
redis.call('SET', KEYS[2], ARGV[1], 'PX', 600000)
return 1
