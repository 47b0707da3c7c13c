-- NEW: creates a queue.
-- KEYS 1 queue record, 2 sender id's key, 3 creation answer, 4 link data, 5 notifier id's key or the sender id's again
-- ARGV 1 hash of the request or '', 2 answer to keep for it, 3 owner token or '', 4 service or '',
--      5 MD5 of the recipient id, 6 fixed link data, 7 user link data (both '' for none),
--      8 … field, value of the record, last: '1' on a retry
-- Answers 0 OK, 6 FENCED, 8 DUPLICATE, or {7, answer}: an earlier attempt with the same request made it.
-- include: assoc
local q, id = KEYS[1], nil
if redis.call('EXISTS', q) == 1 then return ARGV[#ARGV] == '1' and 0 or 8 end
if redis.call('EXISTS', KEYS[2], KEYS[5]) > 0 then
  local kept = ARGV[1] ~= '' and redis.call('GET', KEYS[3])
  if kept and string.sub(kept, 1, #ARGV[1]) == ARGV[1] then return {7, string.sub(kept, #ARGV[1] + 1)} end
  return 8
end
local service = ARGV[4]
local joined = service ~= '' and share(service)
if joined and joined[1] ~= ARGV[3] then return 6 end

id = string.sub(q, #tag + 4)
redis.call('HSET', q, unpack(ARGV, 8, #ARGV - 1))
redis.call('SET', KEYS[2], id)
redis.call('HINCRBY', tag .. ':k', 'queues', 1)
if KEYS[5] ~= KEYS[2] then
  redis.call('SET', KEYS[5], id)
  redis.call('HINCRBY', tag .. ':k', 'notifiers', 1)
end
if ARGV[1] ~= '' then redis.call('SET', KEYS[3], ARGV[1] .. ARGV[2], 'PX', 600000) end
if ARGV[6] ~= '' or ARGV[7] ~= '' then redis.call('HSET', KEYS[4], 'f', ARGV[6], 'u', ARGV[7]) end
if joined then join(joined, id, ARGV[5], false) end
return 0
