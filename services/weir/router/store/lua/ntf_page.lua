-- SUBS of a notifier service: one page of its notifier ids that have notifications.
-- KEYS 1 the service's share of the partition, 2 its ready set
-- ARGV 1 owner token, 2 cursor, 3 page size, 4 '1' on a retry (makes no difference)
-- Answers 6 FENCED or {cursor, notifier id, …}; cursor '0' ends the partition.
-- include: status
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return FENCED end
local scan = redis.call('SSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
local page = {scan[1]}
for n, id in ipairs(scan[2]) do page[n + 1] = id end
return page
