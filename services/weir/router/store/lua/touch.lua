-- Sets the day of last use.
-- KEYS 1 queue record
-- ARGV 1 day, 2 '1' on a retry (makes no difference)
-- Answers 0 OK, 2 GONE.
-- include: status
-- include: works_when_full
if redis.call('EXISTS', KEYS[1]) == 0 then return GONE end
redis.call('HSET', KEYS[1], 'u', ARGV[1])
return OK
