-- TVFY with the right code: the token becomes ACTIVE.
-- KEYS 1 token
-- ARGV 1 rev, 2 '1' on a retry
-- Answers 0 OK, 1 GONE, 4 STALE. A retry that finds the token ACTIVE answers 0.
-- include: status
-- include: due
-- include: works_when_full
local t = KEYS[1]
local r = push_state(t)
local status = r[TOKEN_STATUS]
if not status or status == DELETED then return GONE end
if r[8] ~= ARGV[1] then return ARGV[2] == '1' and status == ACTIVE and OK or STALE end
redis.call('HDEL', t, 'v')
r[VERIFICATION] = false
if status ~= ACTIVE then redis.call('HSET', t, 'u', ACTIVE, 'r', r[8] + 1) end
r[TOKEN_STATUS] = ACTIVE
if due_kind(r) then
  redis.call('ZADD', waits(r[PROVIDER]), 'NX', now(), string.sub(t, ID_AT)) -- notifications that waited for this
elseif not r[CLAIM] then
  stop_waiting(t, r[PROVIDER])
end
return OK
