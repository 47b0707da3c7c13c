-- RKEY: replaces the recipient keys.
-- KEYS 1 queue record
-- ARGV 1 rev, 2 … field, value of the keys (k, k1, k2 …), last: '1' on a retry: the same keys are then OK at any rev
-- Answers the new rev as a negative number, or 1 STALE, 2 GONE.
-- include: status
local q = KEYS[1]
local r = redis.call('HGET', q, 'r')
if not r then return GONE end
local rev = tonumber(r)
local n = (#ARGV - 2) / 2
if r ~= ARGV[1] then
  local same = ARGV[#ARGV] == '1' and redis.call('HEXISTS', q, 'k' .. n) == 0
  for i = 2, #ARGV - 2, 2 do same = same and redis.call('HGET', q, ARGV[i]) == ARGV[i + 1] end
  return same and -rev or STALE
end
redis.call('HSET', q, 'r', rev + 1, unpack(ARGV, 2, #ARGV - 1))
while redis.call('HDEL', q, 'k' .. n) == 1 do n = n + 1 end
return -rev - 1
