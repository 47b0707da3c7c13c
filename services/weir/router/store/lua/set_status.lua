-- OFF, block, unblock: sets the status of a queue. The owner of a blocked queue hears BLOCKED.
-- KEYS 1 queue record
-- ARGV 1 rev, 2 status ('' active, 'o' off, 'b…' blocked), 3 '1' on a retry: the same status
--      is then OK at any rev
-- Answers the new rev as a negative number, or 1 STALE, 2 GONE.
-- include: status
-- include: event
-- include: tell
-- include: works_when_full
local q, status = KEYS[1], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'o', 'rs', 't')
if not r[1] then return GONE end
local rev = tonumber(r[1])
if r[1] ~= ARGV[1] then return ARGV[3] == '1' and (r[4] or '') == status and -rev or STALE end
if status == '' then
  redis.call('HDEL', q, 't')
  redis.call('HSET', q, 'r', rev + 1)
else
  redis.call('HSET', q, 't', status, 'r', rev + 1)
end
if string.sub(status, 1, 1) == 'b' then
  local owner = r[2]
  if r[3] and r[3] ~= '' then owner = redis.call('HGET', tag .. ':v:' .. r[3], 'o') end
  if owner and owner ~= '' then tell(owner, '', BLOCKED, string.sub(q, ID_AT), string.sub(status, 2)) end
end
return -rev - 1
