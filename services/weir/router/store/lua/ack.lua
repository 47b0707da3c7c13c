-- ACK: removes the message in flight and puts the next message in flight.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 owner token, 3 message id or '', 4 operation id, 5 expire before, 6 day, 7 the queue's service or '',
--      8 milliseconds that an empty body stays in place of the removed one (a late retry of its SEND finds the empty body),
--      9 '1' on a retry
-- Answers 1 STALE, 2 GONE, 4 NO_MSG; without a next message 16 + flags of the removed message, or 15 when it had expired;
--      else {that number, next entry, expired}. A retry with the same operation id answers the same.
-- include: status
-- include: acked
-- include: first_entry
local q, m, token = KEYS[1], KEYS[2], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'i', 'io', 'u', 'a')
if not r[1] then return GONE end
if ARGV[9] == '1' and r[5] and string.sub(r[5], 1, 8) == ARGV[4] then
  local done = string.byte(r[5], 9)
  local entry = r[2] ~= '' and r[3] == token and redis.call('LINDEX', m, 0)
  if entry and string.sub(entry, 1, MESSAGE_ID) == r[2] then return {done, entry, 0} end
  return done
end
if r[1] ~= ARGV[1] then return STALE end
local id, service = r[2], ARGV[7]
if not id or id == '' or r[3] ~= token or (ARGV[3] ~= '' and ARGV[3] ~= id) then return NO_MSG end
if service ~= '' and redis.call('HGET', tag .. ':v:' .. service, 'o') ~= token then return NO_MSG end

local done = EXPIRED
local entry = redis.call('LPOP', m)
if entry then
  if string.sub(entry, 1, MESSAGE_ID) == id then
    local flags = string.byte(entry, FLAGS)
    done = REMOVED + flags
    if flags < QUOTA_MARKER then redis.call('SET', tag .. ':b:' .. id, '', 'PX', ARGV[8]) end
  else
    redis.call('LPUSH', m, entry)
  end
end
local expired
entry, expired = first_entry(m, tonumber(ARGV[5]))
local next_id = ''
if entry then
  next_id = string.sub(entry, 1, MESSAGE_ID)
elseif service ~= '' then
  redis.call('SREM', tag .. ':v:' .. service .. ':ready', string.sub(q, ID_AT))
end
local op = ARGV[4] .. string.char(done)
if r[4] == ARGV[6] then
  redis.call('HSET', q, 'i', next_id, 'a', op)
else
  redis.call('HSET', q, 'i', next_id, 'a', op, 'u', ARGV[6])
end
if entry or expired > 0 then return {done, entry or '', expired} end
return done
