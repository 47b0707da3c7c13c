-- After Redis was unavailable: asserts a connection's subscriptions to notifiers again.
-- KEYS queue records
-- ARGV for each record: owner token, notifier id; last: '1' on a retry (makes no difference)
-- Answers for each record: 0 nothing waits, 1 another connection owns it, 2 the notifier is gone, 3 notifications wait.
-- A later NSUB of the same connection is left alone: it has its own answer.
-- include: alive
-- include: works_when_full
local answers = {}
for n, q in ipairs(KEYS) do
  local token, ntf = ARGV[2 * n - 1], ARGV[2 * n]
  local r = redis.call('HMGET', q, 'n', 'no', 'ns')
  local owner = r[2] or ''
  local own, gen = string.match(token, '^([^:]*:[^:]*:)(%d+)$')
  local same = string.sub(owner, 1, #own) == own
  if r[1] ~= ntf then
    answers[n] = 2
  elseif r[3] and r[3] ~= '' then
    answers[n] = 1 -- a service owns it
  elseif same and tonumber(string.sub(owner, #own + 1)) > tonumber(gen) then
    answers[n] = 0
  elseif not same and alive(owner) then
    answers[n] = 1
  else
    if owner ~= token then redis.call('HSET', q, 'no', token) end
    answers[n] = redis.call('EXISTS', tag .. ':f:' .. ntf) == 1 and 3 or 0
  end
end
return answers
