-- END or DELD: the SMP server delivers nothing for this subscription any more.
-- KEYS 1 subscription
-- ARGV 1 epoch, or '' for DELD, which counts in every session, 2 status, 3 '1' on a retry (makes no difference)
-- Answers 0 OK, 1 GONE, 3 FENCED.
-- include: status
-- include: subscription
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 's', 'g')
if not r[1] then return GONE end
local v = tag .. ':v:' .. r[1]
if ARGV[1] ~= '' and redis.call('HGET', v, 'e') ~= ARGV[1] then return FENCED end
dissociate(v, string.sub(KEYS[1], ID_AT), r[2], false)
redis.call('HSET', KEYS[1], 'u', ARGV[2])
redis.call('HDEL', KEYS[1], 'a', 'e')
save_shares()
return OK
