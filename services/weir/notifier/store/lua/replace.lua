-- TRPL: gives a token another device and another code. A verification push is due; a push to the previous device that is
-- under way counts for nothing.
-- KEYS 1 token
-- ARGV 1 rev, 2 provider, 3 device (sealed, unique), 4 hash of the device, 5 '1' on a retry
-- Answers 0 OK, 1 GONE, 4 STALE. A retry that finds its device answers 0.
-- include: status
-- include: due
local t = KEYS[1]
local r = push_state(t)
if not r[TOKEN_STATUS] or r[TOKEN_STATUS] == DELETED then return GONE end
if r[11] == ARGV[3] then return OK end
if r[8] ~= ARGV[1] then return STALE end
stop_waiting(t, r[PROVIDER])
redis.call('HSET', t, 'u', REGISTERED, 'r', r[8] + 1, 'p', ARGV[2], 'd', ARGV[3], 'h', ARGV[4])
make_due(t, {[PROVIDER] = ARGV[2]}, 'v')
return OK
