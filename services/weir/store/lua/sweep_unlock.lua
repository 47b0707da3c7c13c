-- Gives the sweeper's lock back, when this edge has it.
-- KEYS 1 lock
-- ARGV 1 edge, 2 '1' on a retry (not needed)
-- Answers 1 when it had it.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
