-- NDEL: removes the notifier id with its waiting notifications; its owner gets DELD.
-- KEYS 1 queue record
-- ARGV 1 rev, 2 'edge:connection:' of the caller, 3 MD5 of the notifier id, 4 '1' on a retry: a record without a notifier id
--      is then OK at any rev
-- Answers 1 STALE, 2 GONE, or {notifications removed, rev (one more when there was a notifier id)}.
-- include: status
-- include: drop_notifier
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 'r', 'n', 'no', 'ns')
if not r[1] then return GONE end
if not r[2] and (ARGV[4] == '1' or r[1] == ARGV[1]) then return {0, tonumber(r[1])} end
if r[1] ~= ARGV[1] then return STALE end
local removed = drop_notifier(r[2], r[3], r[4], ARGV[3], ARGV[2])
redis.call('HDEL', KEYS[1], 'n', 'nk', 'nd', 'no', 'ns')
redis.call('HSET', KEYS[1], 'r', tonumber(r[1]) + 1)
save_shares()
return {removed, tonumber(r[1]) + 1}
