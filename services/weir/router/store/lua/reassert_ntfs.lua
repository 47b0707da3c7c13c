-- After Redis was unavailable: asserts a connection's subscriptions to notifiers again.
-- KEYS queue records
-- ARGV for each record: owner token, notifier id; last: '1' on a retry (makes no difference)
-- Answers for each record: 0 UNCHANGED, 1 DISPLACED by another connection, 2 MISSING, 3 NTFS_WAIT.
-- include: regain
-- include: works_when_full
local answers = {}
for n, q in ipairs(KEYS) do
  local token, ntf = ARGV[2 * n - 1], ARGV[2 * n]
  local r = redis.call('HMGET', q, 'n', 'no', 'ns')
  if r[1] ~= ntf then
    answers[n] = MISSING
  else
    local owned
    answers[n], owned = regain(q, 'no', r[2], r[3], token)
    if owned and redis.call('EXISTS', tag .. ':f:' .. ntf) == 1 then answers[n] = NTFS_WAIT end
  end
end
return answers
