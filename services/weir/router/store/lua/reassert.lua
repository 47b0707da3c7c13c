-- After Redis was unavailable: asserts a connection's subscriptions again, and finds out what the connection missed.
-- KEYS queue records
-- ARGV 1 expire before, then for each record: owner token, message id that the edge has in flight or '';
--      last: '1' on a retry (makes no difference)
-- Answers for each record: 0 UNCHANGED, 1 DISPLACED by another connection, 2 MISSING, or the entry to deliver.
-- include: first_entry
-- include: regain
-- include: works_when_full
local answers = {}
for n, q in ipairs(KEYS) do
  local token, known = ARGV[2 * n], ARGV[2 * n + 1]
  local r = redis.call('HMGET', q, 'r', 'o', 'i', 'io', 'rs')
  if not r[1] then
    answers[n] = MISSING
  else
    local owned
    answers[n], owned = regain(q, 'o', r[2], r[5], token)
    local entry = owned and first_entry(tag .. ':m:' .. string.sub(q, ID_AT), tonumber(ARGV[1]))
    if entry then
      local id = string.sub(entry, 1, MESSAGE_ID)
      if r[3] ~= id or r[4] ~= token then redis.call('HSET', q, 'i', id, 'io', token) end
      if id ~= known then answers[n] = entry end
    end
  end
end
return answers
