-- Finds the random key of a sketch, or keeps the one that the caller has drawn.
-- KEYS 1 the sketch's key
-- ARGV 1 key drawn by the caller, 2 Unix time at which the key expires, 3 '1' on a retry (makes no difference)
-- Answers the key.
-- include: works_when_full
local found = redis.call('GET', KEYS[1])
if found then return found end
redis.call('SET', KEYS[1], ARGV[1], 'EXAT', ARGV[2])
return ARGV[1]
