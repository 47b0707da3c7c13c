-- SUB: makes a connection (or the service it speaks for) the queue's owner and puts the first message in flight to it.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 owner token, 3 'edge:conn:' of the caller, 4 day, 5 expire before, 6 service or '', 7 MD5 of the
--      recipient id, 8 '1' on a retry: when another connection has taken the queue since the first attempt, it stays so
-- Answers 1 STALE, 2 GONE, 6 FENCED, or 16 + association, or {16 + association, first entry or '', expired};
-- associations: 0 none, 1 new, 2 duplicate, 3 updated, 4 removed; 1, 3 and 4 make rev one more.
-- The previous owner gets END; the owner of the service that the queue left gets END for this queue.
-- include: ended
-- include: head
-- include: assoc
local q, m, token, own, service = KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[6]
local r = redis.call('HMGET', q, 'r', 'o', 'rs', 'u')
if not r[1] then return 2 end
if r[1] ~= ARGV[1] then return 1 end
local joined = service ~= '' and share(service)
if joined and joined[1] ~= token then return 6 end

local id = string.sub(q, #tag + 4)
if ARGV[8] == '1' and r[2] ~= token and ended(token, id) then return 16 end
local entry, expired = head(m, tonumber(ARGV[5]))
local was = r[3] or ''
local assoc = 0
if was ~= service then
  assoc = 1
  if was ~= '' then
    assoc = service == '' and 4 or 3
    local left = share(was)
    leave(left, id, ARGV[7])
    if left[1] then tell(left[1], own, 'V', id, was .. ARGV[1]) end
  end
  if joined then join(joined, id, ARGV[7], entry) end
elseif joined then
  assoc = 2
  if not entry and expired > 0 then redis.call('SREM', joined[4] .. ':ready', id) end
end
if r[2] and r[2] ~= '' and r[2] ~= token then tell(r[2], own, 'E', id, '') end

local set = {'HSET', q, 'o', service == '' and token or '', 'i', entry and string.sub(entry, 1, 24) or ''}
if entry then set[7], set[8] = 'io', token end
if r[4] ~= ARGV[4] then set[#set + 1], set[#set + 2] = 'u', ARGV[4] end
if was ~= service then
  set[#set + 1], set[#set + 2], set[#set + 3], set[#set + 4] = 'rs', service, 'r', tonumber(r[1]) + 1
end
redis.call(unpack(set))
if entry or expired > 0 then return {16 + assoc, entry or '', expired} end
return 16 + assoc
