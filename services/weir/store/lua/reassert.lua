-- Redis was away: says again what a connection is subscribed to, and finds out what it missed.
-- KEYS queue records
-- ARGV 1 expire before, then for each record: owner token, message id that the edge has in flight or '';
--      last: '1' on a retry (not needed)
-- Answers for each record: 0 as it was, 1 another connection has it, 2 it is gone, or the entry to deliver.
-- include: head
local answers = {}
for n, q in ipairs(KEYS) do
  local token, known = ARGV[2 * n], ARGV[2 * n + 1]
  local r = redis.call('HMGET', q, 'r', 'o', 'i', 'io', 'rs')
  local owner = r[2] or ''
  if not r[1] then
    answers[n] = 2
  elseif r[5] and r[5] ~= '' then
    answers[n] = 1 -- a service has it
  elseif owner ~= token and owner ~= ''
    and string.match(owner, '^[^:]*:[^:]*:') ~= string.match(token, '^[^:]*:[^:]*:')
    and redis.call('EXISTS', tag .. ':e:' .. string.match(owner, '^[^:]*')) == 1 then
    answers[n] = 1
  else
    if owner ~= token then redis.call('HSET', q, 'o', token) end
    answers[n] = 0
    local entry = head(tag .. ':m:' .. string.sub(q, #tag + 4), tonumber(ARGV[1]))
    if entry then
      local id = string.sub(entry, 1, 24)
      if r[3] ~= id or r[4] ~= token then redis.call('HSET', q, 'i', id, 'io', token) end
      if id ~= known then answers[n] = entry end
    end
  end
end
return answers
