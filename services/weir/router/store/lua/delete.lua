-- DEL: removes a queue with everything that belongs to it. Its owner and its notifier's owner get DELD unless they are the
-- caller.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, or '' for any rev (the operator, the sweeper), 2 'edge:connection:' of the caller or '',
--      3 MD5 of the recipient id, 4 MD5 of the notifier id or '',
--      5 '' or the first day that counts as used (a queue used since then is STALE), 6 '1' on a retry
-- Answers 1 STALE, 2 GONE, or {messages, notifications, link id or ''}. A retry that finds no queue answers {0, 0, ''}.
-- include: status
-- include: event
-- include: tell
-- include: share
-- include: drop_notifier
-- include: entry
-- include: works_when_full
local q, m, own = KEYS[1], KEYS[2], ARGV[2]
local r = redis.call('HMGET', q, 'r', 'o', 'rs', 's', 'n', 'no', 'ns', 'l', 'u')
if not r[1] then
  if ARGV[6] == '1' then return {0, 0, ''} end
  return GONE
end
if ARGV[1] ~= '' and r[1] ~= ARGV[1] then return STALE end
if ARGV[5] ~= '' and tonumber(r[9]) >= tonumber(ARGV[5]) then return STALE end

local id = string.sub(q, ID_AT)
local entries = redis.call('LRANGE', m, 0, -1)
for _, entry in ipairs(entries) do redis.call('UNLINK', tag .. ':b:' .. string.sub(entry, 1, MESSAGE_ID)) end
if r[3] and r[3] ~= '' then
  local left = share(r[3])
  change(left, -1, id, ARGV[3])
  redis.call('SREM', left.key .. ':ready', id)
  if left.owner then tell(left.owner, own, DELETED, id, r[3]) end
elseif r[2] and r[2] ~= '' then
  tell(r[2], own, DELETED, id, '')
end
local notifications = 0
if r[5] then notifications = drop_notifier(r[5], r[6], r[7], ARGV[4], own) end
redis.call('UNLINK', q, m, tag .. ':s:' .. r[4], tag .. ':d:' .. id)
-- The answer that is kept for a repeated NEW becomes an empty mark until it expires: a NEW that was under way all the time
-- must not make the queue again.
redis.call('SET', tag .. ':c:' .. r[4], '', 'XX', 'KEEPTTL')
redis.call('HINCRBY', tag .. ':k', 'queues', -1)
save_shares()
return {#entries, notifications, r[8] or ''}
