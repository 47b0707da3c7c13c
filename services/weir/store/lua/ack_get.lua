-- ACK of a message that GET brought: removes it when it is still the first. Marks of a subscriber stay as they are.
-- KEYS 1 queue record, 2 message list
-- ARGV 1 rev, 2 message id, 3 day, 4 the queue's service or '', 5 milliseconds that an empty body stays, 6 '1' on a retry
-- Answers 1 STALE, 2 GONE, 15 it was not there, or 16 + its flags.
-- A retry that finds the empty body answers 16: it was removed by the first attempt.
-- include: tag
local r = redis.call('HMGET', KEYS[1], 'r', 'u')
if not r[1] then return 2 end
if r[1] ~= ARGV[1] then return 1 end
if r[2] ~= ARGV[3] then redis.call('HSET', KEYS[1], 'u', ARGV[3]) end
local entry = redis.call('LINDEX', KEYS[2], 0)
local body = tag .. ':b:' .. ARGV[2]
if not entry or string.sub(entry, 1, 24) ~= ARGV[2] then
  if ARGV[6] == '1' and redis.call('EXISTS', body) == 1 and redis.call('STRLEN', body) == 0 then return 16 end
  return 15
end
redis.call('LPOP', KEYS[2])
local flags = string.byte(entry, 33)
if flags < 2 then redis.call('SET', body, '', 'PX', ARGV[5]) end
if ARGV[4] ~= '' and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('SREM', tag .. ':v:' .. ARGV[4] .. ':ready', string.sub(KEYS[1], #tag + 4))
end
return 16 + flags
