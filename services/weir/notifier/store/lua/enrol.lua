-- TRPL: adds a token to the tokens of its new device.
-- KEYS 1 the device's tokens
-- ARGV 1 hash of the verify key, 2 token id, 3 token id that is known to be stale, or '', 4 '1' on a retry (makes no difference)
-- Answers 0 OK, or the id of another token that the device has with this key.
-- include: status
local known = redis.call('HGET', KEYS[1], 'k' .. ARGV[1])
if known == ARGV[2] then return OK end
if known and known ~= ARGV[3] then return known end
redis.call('HSET', KEYS[1], 'k' .. ARGV[1], ARGV[2])
return OK
