-- KEY, SKEY, LKEY: sets the sender's key. The same key again is OK, another key is a CONFLICT.
-- KEYS 1 queue record
-- ARGV 1 rev, 2 key, 3 '1' on a retry: the same key is then OK at any rev
-- Answers the new rev as a negative number, or 1 STALE, 2 GONE, 5 CONFLICT.
-- include: status
local r = redis.call('HMGET', KEYS[1], 'r', 'y')
if not r[1] then return GONE end
local rev = tonumber(r[1])
if r[2] == ARGV[2] and (ARGV[3] == '1' or r[1] == ARGV[1]) then return -rev end
if r[1] ~= ARGV[1] then return STALE end
if r[2] then return CONFLICT end
redis.call('HSET', KEYS[1], 'y', ARGV[2], 'r', rev + 1)
return -rev - 1
