-- Reads a token, and notes the day of use.
-- KEYS 1 token
-- ARGV 1 day or '', 2 '1' on a retry (makes no difference)
-- Answers nil, or {status, provider, rev, verify key, DH keys, device, cron, hash of the device}.
-- include: token_status
local r = redis.call('HMGET', KEYS[1], 'u', 'p', 'r', 'f', 'x', 'd', 'c', 'h', 'y')
if not r[1] or r[1] == DELETED then return false end
if ARGV[1] ~= '' and r[9] ~= ARGV[1] then redis.pcall('HSET', KEYS[1], 'y', ARGV[1]) end
r[9] = nil
return r
