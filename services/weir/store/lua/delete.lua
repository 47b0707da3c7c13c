-- DEL: removes a queue with all it has. Its owner and its notifier's owner get DELD unless they are the caller.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev or '' (the operator, the sweeper), 2 'edge:conn:' of the caller or '', 3 MD5 of the recipient id,
--      4 MD5 of the notifier id or '', 5 '' or the first day that counts as used (a queue used since is STALE),
--      6 '1' on a retry
-- Answers 1 STALE, 2 GONE, or {messages, notifications, link id or ''}. A retry that finds nothing answers {0, 0, ''}.
-- include: tell
-- include: assoc
-- include: drop_notifier
local q, m, own = KEYS[1], KEYS[2], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'o', 'rs', 's', 'n', 'no', 'ns', 'l', 'u')
if not r[1] then
  if ARGV[6] == '1' then return {0, 0, ''} end
  return 2
end
if ARGV[1] ~= '' and r[1] ~= ARGV[1] then return 1 end
if ARGV[5] ~= '' and tonumber(r[9]) >= tonumber(ARGV[5]) then return 1 end

local id = string.sub(q, #tag + 4)
local entries = redis.call('LRANGE', m, 0, -1)
for _, entry in ipairs(entries) do redis.call('UNLINK', tag .. ':b:' .. string.sub(entry, 1, 24)) end
if r[3] and r[3] ~= '' then
  local left = share(r[3])
  leave(left, id, ARGV[3])
  if left[1] then tell(left[1], own, 'D', id, r[3]) end
elseif r[2] and r[2] ~= '' then
  tell(r[2], own, 'D', id, '')
end
local notifications = 0
if r[5] then notifications = drop_notifier(r[5], r[6], r[7], ARGV[4], own) end
redis.call('UNLINK', q, m, tag .. ':s:' .. r[4], tag .. ':c:' .. r[4], tag .. ':d:' .. id)
redis.call('HINCRBY', tag .. ':k', 'queues', -1)
return {#entries, notifications, r[8] or ''}
