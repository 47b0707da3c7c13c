-- SUBS: one page of the service's queues that have messages. Puts the first message of each queue in flight to the owner.
-- KEYS 1 the service's share of the partition, 2 its ready set
-- ARGV 1 owner token, 2 cursor, 3 page size, 4 expire before, 5 '1' to answer also messages already in flight to this owner,
--      6 '1' on a retry: the same as '1' in 5
-- Answers 6 FENCED or {cursor, recipient id, entry, …}; cursor '0' ends the partition. A queue whose keys are damaged is left
-- out.
-- include: status
-- include: first_entry
-- include: damage
-- include: works_when_full
local token, before = ARGV[1], tonumber(ARGV[4])
local again = ARGV[5] == '1' or ARGV[6] == '1'
if redis.call('HGET', KEYS[1], 'o') ~= token then return FENCED end
local scan = redis.call('SSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
local page = {scan[1]}
for _, id in ipairs(scan[2]) do
  local q, list = tag .. ':q:' .. id, tag .. ':m:' .. id
  local r = redis.pcall('HMGET', q, 'i', 'io')
  local damaged = r.err or damage(list)
  local entry = not damaged and first_entry(list, before)
  if entry then
    local message = string.sub(entry, 1, MESSAGE_ID)
    local fresh = not r[1] or r[1] == '' or r[2] ~= token
    if fresh then redis.call('HSET', q, 'i', message, 'io', token) end
    if fresh or (again and r[1] == message) then
      page[#page + 1] = id
      page[#page + 1] = entry
    end
  elseif not damaged then
    redis.call('SREM', KEYS[2], id)
  end
end
return page
