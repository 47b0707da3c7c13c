-- TNEW: makes a token, unless the device has one with this verify key. The token's partition is that of the device.
-- KEYS 1 the device's tokens, 2 the new token
-- ARGV 1 hash of the verify key, 2 token id that is known to be stale, or '', 3 … field, value of the record with p first,
--      last: '1' on a retry
-- Answers 0 OK, or the id of the token that the device has with this key. A retry that finds its token answers 0.
-- include: status
-- include: due
local d, t = KEYS[1], KEYS[2]
local id = string.sub(t, ID_AT)
local known = redis.call('HGET', d, 'k' .. ARGV[1])
if known == id then return OK end
if known and known ~= ARGV[2] then return known end
redis.call('HSET', t, unpack(ARGV, 3, #ARGV - 1))
redis.call('HSET', d, 'k' .. ARGV[1], id)
redis.call('HINCRBY', tag .. ':k', 'tokens', 1)
make_due(t, {[PROVIDER] = ARGV[4]}, 'v')
return OK
