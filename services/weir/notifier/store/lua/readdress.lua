-- SNEW again: the device names the SMP server by another address now.
-- KEYS 1 subscription
-- ARGV 1 address, 2 '1' on a retry (makes no difference)
-- Answers 0 OK, 1 GONE.
-- include: status
-- include: works_when_full
if redis.call('EXISTS', KEYS[1]) == 0 then return GONE end
redis.call('HSET', KEYS[1], 'h', ARGV[1])
return OK
