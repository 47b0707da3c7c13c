-- SUB: makes a connection (or the service it speaks for) the owner of some queues of one partition. The first message of
-- each queue is then in flight to this owner.
-- KEYS queue records
-- ARGV 1 owner token, 2 day, 3 expire before, 4 service or '', then for each queue: rev, MD5 of the recipient id ('' when the
--      queue's service stays the same); last: '1' on a retry
-- Answers for each queue: 1 STALE, 2 GONE, 6 FENCED, or 16 + association, or {16 + association, first entry or '', expired},
--      or the error of a key of this queue that is damaged.
--      Associations: 0 none, 1 new, 2 duplicate, 3 updated, 4 removed; with 1, 3 and 4 rev is one more.
-- A retry leaves a queue alone that another connection has taken since the first attempt.
-- The previous owner gets END. The owner of a service that a queue leaves gets END for this queue.
-- include: tag
-- include: status
-- include: association
-- include: works_when_full
local call = redis.call
local token, day, service, retry = ARGV[1], ARGV[2], ARGV[4], ARGV[#ARGV] == '1'
local own = string.match(token, '^[^:]*:[^:]*:') -- 'edge:connection:'
local owner = service == '' and token or '' -- a service's queues have no owner of their own
local unchanged = SUBSCRIBED + (service == '' and ASSOC_NONE or ASSOC_DUPLICATE)
local fenced = service ~= '' and call('HGET', tag .. ':v:' .. service, 'o') ~= token
local answers, others = {}, nil

-- The usual case, in a few commands: the queue is free or this connection's own, its service stays the
-- same, and no message waits.
for n, q in ipairs(KEYS) do
  local r = redis.pcall('HMGET', q, 'r', 'u', 'o', 'i', 'rs')
  local was = r[3] or ''
  if r.err then
    answers[n] = r
  elseif r[1] ~= ARGV[3 + 2 * n] then
    answers[n] = r[1] and STALE or GONE
  elseif fenced then
    answers[n] = FENCED
  elseif (r[5] or '') == service
    and (was == token or not retry and (was == '' or string.sub(was, 1, #own) == own))
    and call('EXISTS', tag .. ':m:' .. string.sub(q, ID_AT)) == 0 then
    if r[2] ~= day then
      call('HSET', q, 'o', owner, 'i', '', 'u', day)
    elseif r[4] and r[4] ~= '' then
      call('HSET', q, 'o', owner, 'i', '')
    elseif was ~= owner then
      call('HSET', q, 'o', owner)
    end
    answers[n] = unchanged
  else
    others = others or {}
    others[n] = r
  end
end
if not others then return answers end

-- include: lost
-- include: first_entry
-- include: damage
-- include: associate
local before = tonumber(ARGV[3])

for n, q in ipairs(KEYS) do
  local r, rev, hash = others[n], ARGV[3 + 2 * n], ARGV[4 + 2 * n]
  if r then
    local id, was, was_in = string.sub(q, ID_AT), r[3] or '', r[5] or ''
    local list = tag .. ':m:' .. id
    local damaged, waits = damage(list)
    if damaged then
      answers[n] = damaged
    elseif retry and was ~= token and lost(token, id) then
      answers[n] = SUBSCRIBED + ASSOC_NONE
    elseif was_in ~= service and hash == '' then
      answers[n] = STALE
    else
      local entry, expired = false, 0
      if waits then entry, expired = first_entry(list, before) end
      local association = associate(id, was_in, service, hash, rev, own, entry)
      if association == ASSOC_DUPLICATE and not entry and expired > 0 then
        call('SREM', tag .. ':v:' .. service .. ':ready', id)
      end
      if was ~= '' and was ~= token then tell(was, own, END, id, '') end

      local set, in_flight = {'HSET', q, 'o', owner}, entry and string.sub(entry, 1, MESSAGE_ID) or ''
      if in_flight ~= (r[4] or '') then set[5], set[6] = 'i', in_flight end
      if entry then set[#set + 1], set[#set + 2] = 'io', token end
      if r[2] ~= day then set[#set + 1], set[#set + 2] = 'u', day end
      if was_in ~= service then
        set[#set + 1], set[#set + 2], set[#set + 3], set[#set + 4] = 'rs', service, 'r', tonumber(rev) + 1
      end
      call(unpack(set))
      answers[n] = SUBSCRIBED + association
      if entry or expired > 0 then answers[n] = {SUBSCRIBED + association, entry or '', expired} end
    end
  end
end
save_shares()
return answers
