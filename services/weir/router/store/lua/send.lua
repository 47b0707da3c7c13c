-- SEND: appends a message whose body was SET just before. When nothing is in flight, the message goes to the owner.
-- KEYS 1 queue record, 2 message list, 3 body
-- ARGV 1 rev, 2 entry, 3 calling edge, 4 day, 5 expire before, in microseconds; the part of a second is that of the time at
--      which the SEND came, for the event; 6 quota, 7 the queue's service or '',
--      with a notification: 8 notifier id, 9 its service or '', 10 item, 11 most items to keep; last: '1' on a retry
-- Answers 0 OK, 1 STALE, 2 GONE, 3 QUOTA, or {owner on the calling edge or '', notifier's owner there or '', expired,
--         notifications removed because too many waited}.
-- A retry answers as the first attempt did when the message is stored, or was acknowledged since (its body is then empty).
-- include: status
-- include: event
-- include: tell
-- include: first_entry
-- include: item
local q, m = KEYS[1], KEYS[2]
local entry, edge = ARGV[2], ARGV[3]
local id = string.sub(entry, 1, MESSAGE_ID)
local expire_before = ARGV[5] / 1000000
local r = redis.call('HMGET', q, 'r', 'o', 'i', 'io', 'u', 'f', 'no')

local function here(owner)
  return owner and string.sub(owner, 1, #edge + 1) == edge .. ':'
end
local function notifier_owner()
  if ARGV[9] == '' then return r[7] end
  return redis.call('HGET', tag .. ':v:' .. ARGV[9], 'o')
end

if ARGV[#ARGV] == '1' and r[1] then
  if redis.call('STRLEN', KEYS[3]) == 0 then return OK end
  if redis.call('LPOS', m, entry) then
    local notify = #ARGV > 8 and notifier_owner()
    return {r[3] == id and here(r[4]) and r[4] or '', here(notify) and notify or '', 0, 0}
  end
end
if r[1] ~= ARGV[1] then
  redis.call('UNLINK', KEYS[3])
  return r[1] and STALE or GONE
end

local day = ARGV[4]
if r[5] == day then day = nil end
local expired = 0
if r[6] then
  local first
  first, expired = first_entry(m, expire_before)
  if first then
    redis.call('UNLINK', KEYS[3])
    if day then redis.call('HSET', q, 'u', day) end
    return QUOTA
  end
  if redis.call('EXISTS', KEYS[3]) == 0 then return GONE end -- Redis refused the SET, and this answer is not used
  redis.call('HDEL', q, 'f')
end

local size = redis.pcall('RPUSH', m, entry)
if type(size) == 'table' then -- Redis is full since the SET: without its message the body would stay until it expires
  redis.pcall('UNLINK', KEYS[3])
  return size
end
local first = entry
if size > 1 then
  local removed
  first, removed = first_entry(m, expire_before)
  expired = expired + removed
  size = size - removed
  if size > tonumber(ARGV[6]) then
    redis.call('LSET', m, -1, string.sub(entry, 1, FLAGS - 1) .. string.char(QUOTA_MARKER))
    redis.call('UNLINK', KEYS[3])
    redis.call('HSET', q, 'f', '1', 'u', ARGV[4])
    return QUOTA
  end
end

local service, owner, deliver = ARGV[7], r[2], ''
if service ~= '' then
  local v = tag .. ':v:' .. service
  owner = redis.call('HGET', v, 'o')
  if size == 1 then redis.call('SADD', v .. ':ready', string.sub(q, ID_AT)) end
end
if owner and owner ~= '' and (not r[3] or r[3] == '' or r[4] ~= owner) then
  local given
  if first == entry and here(owner) then
    deliver, given = owner, true
  else
    if first == entry then -- delivered at once: the other edge measures the time since the SEND
      first = id .. struct.pack('>I4', ARGV[5] % 1000000) .. string.sub(entry, TIME)
    end
    given = tell(owner, '', MSG, string.sub(q, ID_AT), first)
  end
  if given then
    redis.call('HSET', q, 'i', string.sub(first, 1, MESSAGE_ID), 'io', owner, 'u', ARGV[4])
    day = nil
  end
end
if day then redis.call('HSET', q, 'u', day) end

local notify, lost = '', 0
if #ARGV > 8 then
  local ntf, nservice = ARGV[8], ARGV[9]
  local waiting = redis.call('RPUSH', tag .. ':f:' .. ntf, ARGV[10])
  if waiting == 1 then
    if nservice ~= '' then redis.call('SADD', tag .. ':v:' .. nservice .. ':ready', ntf) end
    local to = notifier_owner()
    if here(to) then
      notify = to
    elseif to and to ~= '' then
      tell(to, '', NOTIFICATIONS, ntf, string.sub(ARGV[10], NONCE, NONCE_END))
    end
  elseif waiting > tonumber(ARGV[11]) then
    redis.call('LPOP', tag .. ':f:' .. ntf)
    lost = 1
  end
end

if deliver == '' and notify == '' and expired == 0 and lost == 0 then return OK end
return {deliver, notify, expired, lost}
