-- ACK of a message that GET brought: removes the message when it is still the first. The in-flight mark stays unchanged.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 message id, 3 day, 4 the queue's service or '', 5 milliseconds that an empty body stays, 6 '1' on a retry
-- Answers 1 STALE, 2 GONE, 15 when it was not the first, or 16 + its flags.
-- A retry that finds the empty body answers 16: the first attempt removed the message.
-- include: status
-- include: acked
-- include: tag
-- include: entry
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 'r', 'u')
if r[1] ~= ARGV[1] then return r[1] and STALE or GONE end
if r[2] ~= ARGV[3] then redis.call('HSET', KEYS[1], 'u', ARGV[3]) end
local entry = redis.call('LINDEX', KEYS[2], 0)
local body = tag .. ':b:' .. ARGV[2]
if not entry or string.sub(entry, 1, MESSAGE_ID) ~= ARGV[2] then
  if ARGV[6] == '1' and redis.call('EXISTS', body) == 1 and redis.call('STRLEN', body) == 0 then return REMOVED end
  return EXPIRED
end
redis.call('LPOP', KEYS[2])
local flags = string.byte(entry, FLAGS)
if flags < QUOTA_MARKER then redis.call('SET', body, '', 'PX', ARGV[5]) end
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('SREM', tag .. ':v:' .. ARGV[4] .. ':ready', string.sub(KEYS[1], ID_AT))
end
return REMOVED + flags
