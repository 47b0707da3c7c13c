-- Releases the sweeper's lock if this edge has it.
-- KEYS 1 lock
-- ARGV 1 edge, 2 '1' on a retry (makes no difference)
-- Answers 1 when the edge had the lock, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
