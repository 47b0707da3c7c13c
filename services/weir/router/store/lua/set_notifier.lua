-- NKEY: gives the queue a notifier id and keys. A previous notifier id is removed, and its owner gets DELD.
-- KEYS 1 queue record, 2 the new notifier id's key
-- ARGV 1 rev, 2 'edge:connection:' of the caller, 3 MD5 of the previous notifier id, 4 … 9 fields n, nk, nd with values,
--      10 '1' on a retry
-- Answers 1 STALE, 2 GONE, 8 DUPLICATE, or {notifications removed, new rev}. A retry that finds its notifier id answers
--      {0, rev}.
-- include: status
-- include: drop_notifier
local q, own = KEYS[1], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'n', 'no', 'ns')
if not r[1] then return GONE end
if ARGV[10] == '1' and r[2] == ARGV[5] then return {0, tonumber(r[1])} end
if r[1] ~= ARGV[1] then return STALE end
if redis.call('EXISTS', KEYS[2]) == 1 then return DUPLICATE end
local removed = 0
if r[2] then removed = drop_notifier(r[2], r[3], r[4], ARGV[3], own) end
redis.call('HDEL', q, 'no', 'ns')
redis.call('HSET', q, 'r', tonumber(r[1]) + 1, unpack(ARGV, 4, 9))
redis.call('SET', KEYS[2], string.sub(q, ID_AT))
redis.call('HINCRBY', tag .. ':k', 'notifiers', 1)
save_shares()
return {removed, tonumber(r[1]) + 1}
