-- SEND: appends a message whose body was SET just before, and gives it to the owner when nothing is in flight.
-- KEYS 1 queue record, 2 message list, 3 body
-- ARGV 1 rev, 2 entry, 3 calling edge, 4 day, 5 expire before, 6 quota, 7 the queue's service or '',
--      with a notification: 8 notifier id, 9 its service or '', 10 item, 11 most items to keep; last: '1' on a retry
-- Answers 0 OK, 1 STALE, 2 GONE, 3 QUOTA, or {owner on the calling edge or '', notifier's owner there or '', expired,
--         notifications dropped because too many waited}.
-- A retry whose message is stored, or was acknowledged since (empty body), answers as the first attempt did.
-- include: tell
-- include: head
local q, m = KEYS[1], KEYS[2]
local entry, edge = ARGV[2], ARGV[3]
local id = string.sub(entry, 1, 24)
local r = redis.call('HMGET', q, 'r', 'o', 'i', 'io', 'u', 'f', 'no')

local function here(owner)
  return owner and string.sub(owner, 1, #edge + 1) == edge .. ':'
end
local function notifier_owner()
  if ARGV[9] == '' then return r[7] end
  return redis.call('HGET', tag .. ':v:' .. ARGV[9], 'o')
end

if ARGV[#ARGV] == '1' and r[1] then
  if redis.call('STRLEN', KEYS[3]) == 0 then return 0 end
  if redis.call('LPOS', m, entry) then
    local notify = #ARGV > 8 and notifier_owner()
    return {r[3] == id and here(r[4]) and r[4] or '', here(notify) and notify or '', 0, 0}
  end
end
if r[1] ~= ARGV[1] then
  redis.call('UNLINK', KEYS[3])
  return r[1] and 1 or 2
end

local day = ARGV[4]
if r[5] == day then day = nil end
local expired = 0
if r[6] then
  local first
  first, expired = head(m, tonumber(ARGV[5]))
  if first then
    redis.call('UNLINK', KEYS[3])
    if day then redis.call('HSET', q, 'u', day) end
    return 3
  end
  redis.call('HDEL', q, 'f')
end

local size = redis.call('RPUSH', m, entry)
local first = entry
if size > 1 then
  local dropped
  first, dropped = head(m, tonumber(ARGV[5]))
  expired = expired + dropped
  size = size - dropped
  if size > tonumber(ARGV[6]) then
    redis.call('LSET', m, -1, string.sub(entry, 1, 32) .. '\2')
    redis.call('UNLINK', KEYS[3])
    redis.call('HSET', q, 'f', '1', 'u', ARGV[4])
    return 3
  end
end

local service, owner, deliver = ARGV[7], r[2], ''
if service ~= '' then
  local v = tag .. ':v:' .. service
  owner = redis.call('HGET', v, 'o')
  if size == 1 then redis.call('SADD', v .. ':ready', string.sub(q, #tag + 4)) end
end
if owner and owner ~= '' and (not r[3] or r[3] == '' or r[4] ~= owner) then
  local given
  if first == entry and here(owner) then
    deliver, given = owner, true
  else
    given = tell(owner, '', 'M', string.sub(q, #tag + 4), first)
  end
  if given then
    redis.call('HSET', q, 'i', string.sub(first, 1, 24), 'io', owner, 'u', ARGV[4])
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
      tell(to, '', 'N', ntf, string.sub(ARGV[10], 9, 32))
    end
  elseif waiting > tonumber(ARGV[11]) then
    redis.call('LPOP', tag .. ':f:' .. ntf)
    lost = 1
  end
end

if deliver == '' and notify == '' and expired == 0 and lost == 0 then return 0 end
return {deliver, notify, expired, lost}
