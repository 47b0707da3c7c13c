-- Only one edge sweeps at a time: takes the sweeper's lock, or extends it.
-- KEYS 1 lock
-- ARGV 1 edge, 2 milliseconds, 3 '1' on a retry (makes no difference)
-- Answers 1 when the edge has the lock, else 0.
-- include: works_when_full
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
