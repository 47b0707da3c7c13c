-- After Redis was unavailable: asserts a connection's subscriptions again, and finds out what the connection missed.
-- KEYS queue records
-- ARGV 1 expire before, then for each record: owner token, message id that the edge has in flight or '';
--      last: '1' on a retry (makes no difference)
-- Answers for each record: 0 unchanged, 1 another connection owns it, 2 the queue is gone, or the entry to deliver.
-- A later SUB of the same connection is left alone: it has its own answer.
-- include: first_entry
-- include: alive
-- include: works_when_full
local answers = {}
for n, q in ipairs(KEYS) do
  local token, known = ARGV[2 * n], ARGV[2 * n + 1]
  local r = redis.call('HMGET', q, 'r', 'o', 'i', 'io', 'rs')
  local owner = r[2] or ''
  local own, gen = string.match(token, '^([^:]*:[^:]*:)(%d+)$')
  local same = string.sub(owner, 1, #own) == own
  if not r[1] then
    answers[n] = 2
  elseif r[5] and r[5] ~= '' then
    answers[n] = 1 -- a service owns it
  elseif same and tonumber(string.sub(owner, #own + 1)) > tonumber(gen) then
    answers[n] = 0
  elseif not same and alive(owner) then
    answers[n] = 1
  else
    if owner ~= token then redis.call('HSET', q, 'o', token) end
    answers[n] = 0
    local entry = first_entry(tag .. ':m:' .. string.sub(q, ID_AT), tonumber(ARGV[1]))
    if entry then
      local id = string.sub(entry, 1, MESSAGE_ID)
      if r[3] ~= id or r[4] ~= token then redis.call('HSET', q, 'i', id, 'io', token) end
      if id ~= known then answers[n] = entry end
    end
  end
end
return answers
