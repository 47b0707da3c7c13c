-- A page of a notifier service's notifier ids that have notifications waiting.
-- KEYS 1 the service's share of the partition, 2 its ready set
-- ARGV 1 owner token, 2 cursor, 3 page size, 4 '1' on a retry (not needed)
-- Answers 6 FENCED or {cursor, notifier id, …}; cursor '0' ends the partition.
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return 6 end
local scan = redis.call('SSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
return {scan[1], unpack(scan[2])}
