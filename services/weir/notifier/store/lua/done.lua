-- Stores what became of a push, and claims the token's next push if one is due by now.
-- KEYS 1 token
-- ARGV 1 claim, 2 kind, 3 number, 4 hash of the device that it was sent to, 5 outcome: 'd' delivered, 'i' invalid, 'f' failed,
--      'l' try again later, 'b' given back without a try; 6 for 'i' the token's new status, for 'l' and 'b' milliseconds or ''
--      for a growing delay, 7 next claim, 8 its milliseconds, 9 most tries, 10 first delay, 11 longest delay (milliseconds),
--      12 '1' on a retry
-- Answers 0, or the next push (include/push.lua). A retry whose first attempt was executed answers as that one did.
-- include: push
-- include: due
-- include: works_when_full
local t, kind, outcome = KEYS[1], ARGV[2], ARGV[5]
local r = push_state(t)
if not r[TOKEN_STATUS] or r[TOKEN_STATUS] == DELETED then return 0 end
local mine = r[CLAIM] == ARGV[1]
if not mine and ARGV[12] == '1' then
  if r[CLAIM] == ARGV[7] and due_kind(r) then return answer_push(t, r, ARGV[7]) end
  return 0
end
local place = ({v = VERIFICATION, m = MESSAGES, k = CHECK})[kind]
local same = r[place] == ARGV[3]
local id = string.sub(t, ID_AT)

if mine and (outcome == 'l' or outcome == 'b') then
  local tries = tonumber(r[TRIES] or 0) + (outcome == 'l' and 1 or 0)
  if tries <= tonumber(ARGV[9]) then
    local after = tonumber(ARGV[6]) or math.min(ARGV[10] * 2 ^ math.min(tries - 1, 30), tonumber(ARGV[11]))
    redis.call('HDEL', t, 'o')
    if tries > 0 then redis.call('HSET', t, 'n', tries) end
    redis.call('ZADD', waits(r[PROVIDER]), now() + math.floor(after), id)
    return 0
  end
  outcome = 'f'
end
if outcome == 'i' and redis.call('HGET', t, 'h') == ARGV[4] then
  redis.call('HDEL', t, 'v', 'k')
  redis.call('HSET', t, 'u', ARGV[6], 'r', r[8] + 1)
  r[TOKEN_STATUS], r[VERIFICATION], r[CHECK] = ARGV[6], false, false
elseif same and (outcome == 'd' or outcome == 'f') then
  redis.call('HDEL', t, kind)
  r[place] = false
  if kind == 'v' and outcome == 'd' and r[TOKEN_STATUS] == REGISTERED then
    redis.call('HSET', t, 'u', CONFIRMED, 'r', r[8] + 1)
    r[TOKEN_STATUS], r[8] = CONFIRMED, tostring(r[8] + 1)
  end
end
if not mine then return 0 end
redis.call('HDEL', t, 'n')
if due_kind(r) then return claim_push(t, r, ARGV[7], ARGV[8]) end
stop_waiting(t, r[PROVIDER])
return 0
