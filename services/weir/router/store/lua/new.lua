-- NEW: creates a queue.
-- KEYS 1 queue record, 2 sender id's key, 3 creation answer, 4 link data, 5 notifier id's key, or the sender id's key again for none
-- ARGV 1 hash of the request or '', 2 answer to keep for a repeated request, 3 owner token or '', 4 service or '',
--      5 MD5 of the recipient id, 6 fixed link data, 7 user link data (both '' for none),
--      8 … field, value of the record, last: '1' on a retry
-- Answers 0 OK, 6 FENCED, 8 DUPLICATE, or {7 EXISTS, answer}: an earlier request with the same hash
--      made the queue. A retry that finds its queue answers 0. DUPLICATE also when a queue with this sender id was made
--      and deleted: the creation answer is empty then.
-- include: status
-- include: share
local q = KEYS[1]
if redis.call('EXISTS', q) == 1 then return ARGV[#ARGV] == '1' and OK or DUPLICATE end
local kept = ARGV[1] ~= '' and redis.call('GET', KEYS[3])
if kept == '' then return DUPLICATE end
if redis.call('EXISTS', KEYS[2], KEYS[5]) > 0 then
  if kept and string.sub(kept, 1, #ARGV[1]) == ARGV[1] then return {EXISTS, string.sub(kept, #ARGV[1] + 1)} end
  return DUPLICATE
end
local service = ARGV[4]
local joined = service ~= '' and share(service)
if joined and joined.owner ~= ARGV[3] then return FENCED end

local id = string.sub(q, ID_AT)
redis.call('HSET', q, unpack(ARGV, 8, #ARGV - 1))
redis.call('SET', KEYS[2], id)
redis.call('HINCRBY', tag .. ':k', 'queues', 1)
if KEYS[5] ~= KEYS[2] then
  redis.call('SET', KEYS[5], id)
  redis.call('HINCRBY', tag .. ':k', 'notifiers', 1)
end
if ARGV[1] ~= '' then redis.call('SET', KEYS[3], ARGV[1] .. ARGV[2], 'PX', 600000) end
if ARGV[6] ~= '' or ARGV[7] ~= '' then redis.call('HSET', KEYS[4], 'f', ARGV[6], 'u', ARGV[7]) end
if joined then change(joined, 1, id, ARGV[5]) end
save_shares()
return OK
