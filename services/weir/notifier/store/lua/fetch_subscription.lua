-- Reads a subscription with its token, and notes the token's day of use.
-- KEYS 1 subscription
-- ARGV 1 day or '', 2 '1' on a retry (makes no difference)
-- Answers nil, or {token id, server id, notifier id, address, key, status, associated, mark, the session's mark, whether the
--      server's service is subscribed, status, provider, rev, verify key, DH keys, device, cron, hash of the device}.
-- include: tag
-- include: token_status
local answer = redis.call('HMGET', KEYS[1], 't', 's', 'n', 'h', 'k', 'u', 'a', 'e')
if not answer[1] then return false end
local t = tag .. ':t:' .. answer[1]
local token = redis.call('HMGET', t, 'u', 'p', 'r', 'f', 'x', 'd', 'c', 'h', 'y')
if not token[1] or token[1] == DELETED then return false end
if ARGV[1] ~= '' and token[9] ~= ARGV[1] then redis.pcall('HSET', t, 'y', ARGV[1]) end
local v = redis.call('HMGET', tag .. ':v:' .. answer[2], 'e', 'd', 'u')
answer[9] = (v[1] or '') .. '.' .. (v[2] or '')
answer[10] = v[3] or ''
for n = 1, 8 do answer[10 + n] = token[n] end
return answer
