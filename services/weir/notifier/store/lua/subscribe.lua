-- SNEW: makes a subscription. The owner of the SMP server hears of it.
-- KEYS 1 subscription, 2 token
-- ARGV 1 token id, 2 server id, 3 … field, value of the record, last: '1' on a retry
-- Answers 1 GONE, 2 AUTH: the status of the token does not allow it, or the subscription is another token's;
--      5 EXISTS: the token has it already; {whether somebody owns the server}. A retry that finds it answers as the first attempt.
-- include: status
-- include: event
-- include: tell
-- include: sub_status
-- include: token_status
local s, t, v = KEYS[1], KEYS[2], tag .. ':v:' .. ARGV[2]
local id = string.sub(s, ID_AT)
local status = redis.call('HGET', t, 'u')
if not status or status == DELETED then return GONE end
local first = string.sub(status, 1, 1)
if first ~= ACTIVE and first ~= INVALID and first ~= EXPIRED then return AUTH end
local r = redis.call('HMGET', v, 'o', 'e')
local owned = r[1] and redis.call('EXISTS', tag .. ':e:' .. string.match(r[1], '^[^:]*')) or 0
local known = redis.call('HGET', s, 't')
if known then
  if known ~= ARGV[1] then return AUTH end
  return ARGV[#ARGV] == '1' and {owned} or EXISTS
end
redis.call('HSET', s, 't', ARGV[1], 's', ARGV[2], 'u', SUB_NEW, unpack(ARGV, 3, #ARGV - 1))
redis.call('SADD', tag .. ':u:' .. ARGV[1], id)
redis.call('ZADD', v .. ':p', 0, id)
redis.call('HINCRBY', tag .. ':k', 'subscriptions', 1)
if owned == 1 then tell(r[1], '', SUBSCRIBE, ARGV[2], id) end
return {owned}
