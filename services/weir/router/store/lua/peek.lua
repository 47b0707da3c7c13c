-- GET, QUE: reads the first message and the number of messages. The owner and the in-flight mark stay unchanged.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 expire before, 3 the queue's service or '', 4 '1' on a retry (makes no difference)
-- Answers 1 STALE, 2 GONE, or {number of messages, first entry or ''}.
-- include: status
-- include: first_entry
local rev = redis.call('HGET', KEYS[1], 'r')
if rev ~= ARGV[1] then return rev and STALE or GONE end
local entry, expired = first_entry(KEYS[2], tonumber(ARGV[2]))
if expired > 0 and not entry and ARGV[3] ~= '' then
  redis.call('SREM', tag .. ':v:' .. ARGV[3] .. ':ready', string.sub(KEYS[1], ID_AT))
end
return {redis.call('LLEN', KEYS[2]), entry or ''}
