-- NMSG: keeps the notification as the newest of its subscription, and claims the token's push.
-- KEYS 1 subscription
-- ARGV 1 time (8 bytes, big-endian seconds) ‖ nonce, 2 length of the notifier id (1 byte) ‖ notifier id ‖ metadata, 3 most
--      notifications to keep, 4 claim, 5 its milliseconds, 6 the providers that have room, 7 '1' on a retry
-- Answers 0 OK: the push waits, or another one of the token is under way; 1 GONE, 2 AUTH: the token is not ACTIVE;
--      or the push (include/push.lua). A retry that finds the notification, or a newer one of its subscription, keeps that.
-- Works while memory is full: a token keeps only a few notifications, and a refused notification would be lost.
-- include: status
-- include: push
-- include: works_when_full
local id = string.sub(KEYS[1], ID_AT)
local s = redis.call('HMGET', KEYS[1], 't', 'h')
if not s[1] then return GONE end
local t = tag .. ':t:' .. s[1]
local r = push_state(t)
if r[TOKEN_STATUS] ~= ACTIVE then return AUTH end

local list, retry, kept = tag .. ':l:' .. s[1], ARGV[7] == '1', false
local entries = redis.call('LRANGE', list, 0, -1)
for _, entry in ipairs(entries) do
  if string.sub(entry, 1, #id) == id then
    local same = string.sub(entry, #id + 1, #id + #ARGV[1]) == ARGV[1]
    if retry and (same or struct.unpack('>I4', entry, #id + 5) > struct.unpack('>I4', ARGV[1], 5)) then
      kept = true
    else
      redis.call('LREM', list, 1, entry)
    end
  end
end
if kept then
  if r[CLAIM] == ARGV[4] then return answer_push(t, r, ARGV[4]) end
  return OK
end
if redis.call('RPUSH', list, id .. ARGV[1] .. s[2] .. ARGV[2]) > tonumber(ARGV[3]) then redis.call('LPOP', list) end
r[MESSAGES] = redis.call('HINCRBY', t, 'q', 1)
redis.call('HSET', t, 'm', r[MESSAGES])
if r[CLAIM] then return OK end
if r[TRIES] or not string.find(ARGV[6], r[PROVIDER], 1, true) then
  redis.call('ZADD', waits(r[PROVIDER]), 'NX', now(), s[1])
  return OK
end
return claim_push(t, r, ARGV[4], ARGV[5])
