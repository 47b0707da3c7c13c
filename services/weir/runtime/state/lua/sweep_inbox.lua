-- The sweeper: deletes the inbox of a dead edge.
-- KEYS 1 inbox, 2 the edge's lease
-- ARGV 1 '1' on a retry (makes no difference)
-- Answers 1 when it deleted the inbox, else 0.
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
return redis.call('UNLINK', KEYS[1])
