-- GET, QUE: the first message and how many there are. Nobody becomes an owner.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 expire before, 3 the queue's service or '', 4 '1' on a retry (not needed)
-- Answers 1 STALE, 2 GONE, or {number of messages, first entry or ''}.
-- include: head
local rev = redis.call('HGET', KEYS[1], 'r')
if not rev then return 2 end
if rev ~= ARGV[1] then return 1 end
local entry, expired = head(KEYS[2], tonumber(ARGV[2]))
if expired > 0 and not entry and ARGV[3] ~= '' then
  redis.call('SREM', tag .. ':v:' .. ARGV[3] .. ':ready', string.sub(KEYS[1], #tag + 4))
end
return {redis.call('LLEN', KEYS[2]), entry or ''}
