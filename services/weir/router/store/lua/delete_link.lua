-- LDEL: removes the link's data, and the link id from the record. The link's index is in another partition; the caller frees it.
-- KEYS 1 queue record, 2 link data
-- ARGV 1 rev, 2 '1' on a retry: a record without a link is then OK at any rev
-- Answers the rev (one more when there was a link) as a negative number, or 1 STALE, 2 GONE.
-- include: status
local r = redis.call('HMGET', KEYS[1], 'r', 'l')
if not r[1] then return GONE end
local rev = tonumber(r[1])
if not r[2] and (ARGV[2] == '1' or r[1] == ARGV[1]) then return -rev end
if r[1] ~= ARGV[1] then return STALE end
redis.call('HDEL', KEYS[1], 'l')
redis.call('HSET', KEYS[1], 'r', rev + 1)
redis.call('UNLINK', KEYS[2])
return -rev - 1
