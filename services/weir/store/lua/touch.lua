-- The day of last use.
-- KEYS 1 queue record
-- ARGV 1 day, 2 '1' on a retry (not needed)
-- Answers 0 OK, 2 GONE.
if redis.call('EXISTS', KEYS[1]) == 0 then return 2 end
redis.call('HSET', KEYS[1], 'u', ARGV[1])
return 0
