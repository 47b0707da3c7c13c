-- Deletes a token for everybody. drop_subscriptions deletes its subscriptions, and then the rest of it.
-- KEYS 1 token, 2 times of the next periodic pushes
-- ARGV 1 hash of the device that it must have, or '', 2 '1' on a retry
-- Answers 0 OK, 1 GONE, 4 STALE: it has another device. A retry that finds it deleted answers 0.
-- include: status
-- include: due
-- include: works_when_full
local t = KEYS[1]
local r = redis.call('HMGET', t, 'u', 'p', 'h')
if not r[1] then return GONE end
if r[1] == DELETED then return ARGV[2] == '1' and OK or GONE end
if ARGV[1] ~= '' and ARGV[1] ~= r[3] then return STALE end
stop_waiting(t, r[2])
redis.call('ZREM', KEYS[2], string.sub(t, ID_AT))
redis.call('UNLINK', tag .. ':l:' .. string.sub(t, ID_AT))
redis.call('HDEL', t, 'v', 'm', 'k', 'x', 'd')
redis.call('HSET', t, 'u', DELETED)
return OK
