-- OFF, block, unblock. The owner of a queue that gets blocked hears BLOCKED.
-- KEYS 1 queue record
-- ARGV 1 rev, 2 status ('' active, 'o' off, 'b…' blocked), 3 '1' on a retry: then the status in place
--      is OK at any rev
-- Answers the new rev, negative, or 1 STALE, 2 GONE.
-- include: tell
local q, status = KEYS[1], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'o', 'rs', 't')
if not r[1] then return 2 end
local rev = tonumber(r[1])
if r[1] ~= ARGV[1] then return ARGV[3] == '1' and (r[4] or '') == status and -rev or 1 end
if status == '' then
  redis.call('HDEL', q, 't')
  redis.call('HSET', q, 'r', rev + 1)
else
  redis.call('HSET', q, 't', status, 'r', rev + 1)
end
if string.sub(status, 1, 1) == 'b' then
  local owner = r[2]
  if r[3] and r[3] ~= '' then owner = redis.call('HGET', tag .. ':v:' .. r[3], 'o') end
  if owner and owner ~= '' then tell(owner, '', 'B', string.sub(q, #tag + 4), string.sub(status, 2)) end
end
return -rev - 1
