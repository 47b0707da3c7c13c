-- TNEW for a token that exists: a verification push is due again. A status that does not allow TVFY becomes REGISTERED.
-- KEYS 1 token
-- ARGV 1 hash of the device, 2 id of this operation, 3 '1' on a retry
-- Answers 1 GONE, 4 STALE: the token has another device by now, or {status, rev}. A retry changes nothing if the first attempt
--      was executed.
-- include: status
-- include: due
-- include: works_when_full
local t = KEYS[1]
local r = push_state(t)
if not r[TOKEN_STATUS] or r[TOKEN_STATUS] == DELETED then return GONE end
local more = redis.call('HMGET', t, 'h', 'z')
if more[1] ~= ARGV[1] then return STALE end
if ARGV[3] == '1' and more[2] == ARGV[2] then return {r[TOKEN_STATUS], r[8]} end
local status, rev = r[TOKEN_STATUS], r[8]
if status ~= REGISTERED and status ~= CONFIRMED and status ~= ACTIVE then
  status = REGISTERED
  rev = rev + 1
end
redis.call('HSET', t, 'u', status, 'r', rev, 'z', ARGV[2])
make_due(t, r, 'v')
return {status, tostring(rev)}
