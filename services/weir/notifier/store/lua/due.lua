-- Claims pushes of one provider that wait: new ones, retries whose time has come, and those whose claim has expired.
-- KEYS 1 tokens with a push of this provider
-- ARGV 1 most pushes, 2 claim (each token's number is added), 3 its milliseconds, 4 '1' on a retry
-- Answers the pushes (include/push.lua). A retry answers those that the first attempt has claimed.
-- include: push
-- include: works_when_full
local w, claim = KEYS[1], ARGV[2] .. ':'
local provider = string.sub(w, ID_AT)
local answer = {}
if ARGV[4] == '1' then
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', w, now(), now() + ARGV[3], 'LIMIT', 0, 10000)) do
    local r = push_state(tag .. ':t:' .. id)
    if r[CLAIM] and string.sub(r[CLAIM], 1, #claim) == claim and due_kind(r) then
      answer[#answer + 1] = answer_push(tag .. ':t:' .. id, r, r[CLAIM])
    end
  end
  if #answer > 0 then return answer end
end
for n, id in ipairs(redis.call('ZRANGEBYSCORE', w, '-inf', now(), 'LIMIT', 0, ARGV[1])) do
  local t = tag .. ':t:' .. id
  local r = push_state(t)
  if r[PROVIDER] == provider and due_kind(r) then
    answer[#answer + 1] = claim_push(t, r, claim .. n, ARGV[3])
  else
    redis.call('ZREM', w, id)
    if r[PROVIDER] == provider then redis.call('HDEL', t, 'o', 'n') end
  end
end
return answer
