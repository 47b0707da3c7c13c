-- LSET: sets the link's data; the link id and the fixed data never change.
-- KEYS 1 queue record, 2 link data
-- ARGV 1 rev, 2 link id, 3 fixed data, 4 user data, 5 '1' on a retry: the same link id is then OK at any rev
-- Answers the rev (one more with the first data) as a negative number, or 1 STALE, 2 GONE, 5 CONFLICT.
-- include: status
local r = redis.call('HMGET', KEYS[1], 'r', 'l')
if not r[1] then return GONE end
local rev = tonumber(r[1])
if r[1] ~= ARGV[1] and not (ARGV[5] == '1' and r[2] == ARGV[2]) then return STALE end
if r[2] then
  if r[2] ~= ARGV[2] or redis.call('HGET', KEYS[2], 'f') ~= ARGV[3] then return CONFLICT end
  redis.call('HSET', KEYS[2], 'u', ARGV[4])
  return -rev
end
redis.call('HSET', KEYS[1], 'l', ARGV[2], 'r', rev + 1)
redis.call('HSET', KEYS[2], 'f', ARGV[3], 'u', ARGV[4])
return -rev - 1
