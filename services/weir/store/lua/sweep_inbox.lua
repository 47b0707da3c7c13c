-- Removes the inbox of an edge that is dead.
-- KEYS 1 inbox, 2 the edge's lease
-- ARGV 1 '1' on a retry (not needed)
-- Answers 1 when it did.
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return redis.call('UNLINK', KEYS[1])
