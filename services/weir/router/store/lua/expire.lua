-- The sweeper: removes expired messages and notifications of some queues, and finds queues that are not in use.
-- KEYS queue records
-- ARGV 1 messages before, 2 notifications before (Unix times), 3 first day that counts as used, or '' to find no unused queues,
--      4 '1' on a retry (what the first attempt removed is then not counted)
-- Answers {messages removed, notifications removed, messages left, notifications left,
--         recipient id, notifier id or '', … of each unused queue}.
-- include: first_entry
-- include: item
-- include: alive
local before, ntf_before, used = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local messages, notifications, left, waiting = 0, 0, 0, 0
local answer = {0, 0, 0, 0}

for _, q in ipairs(KEYS) do
  local r = redis.call('HMGET', q, 'u', 'o', 'rs', 'n', 'ns')
  local id = string.sub(q, ID_AT)
  local list = tag .. ':m:' .. id
  local entry, removed = first_entry(list, before)
  messages = messages + removed
  if entry then
    left = left + redis.call('LLEN', list)
  elseif removed > 0 and r[3] and r[3] ~= '' then
    redis.call('SREM', tag .. ':v:' .. r[3] .. ':ready', id)
  end
  if r[4] then
    local f = tag .. ':f:' .. r[4]
    local item = redis.call('LINDEX', f, 0)
    while item and struct.unpack('>I4', item, ITEM_TIME) < ntf_before do
      redis.call('LPOP', f)
      notifications = notifications + 1
      item = redis.call('LINDEX', f, 0)
      if not item and r[5] and r[5] ~= '' then redis.call('SREM', tag .. ':v:' .. r[5] .. ':ready', r[4]) end
    end
    if item then waiting = waiting + redis.call('LLEN', f) end
  end
  if used and r[1] and tonumber(r[1]) < used and not alive(r[2]) then
    local service = r[3] and r[3] ~= '' and redis.call('HMGET', tag .. ':v:' .. r[3], 'o', 'u')
    if not service or (not alive(service[1]) and tonumber(service[2] or 0) < used) then
      answer[#answer + 1] = id
      answer[#answer + 1] = r[4] or ''
    end
  end
end
answer[1], answer[2], answer[3], answer[4] = messages, notifications, left, waiting
return answer
