-- A service changes hands: draws the next epoch in the service's home partition. The previous owner gets ENDS from here only.
-- KEYS 1 the service's share of its home partition
-- ARGV 1 'edge:connection:' of the new owner, 2 lowest epoch to draw, 3 service id, 4 now (Unix time),
--      5 '1' on a retry (it draws another epoch, which is harmless)
-- Answers the epoch.
-- include: event
-- include: tell
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 'e', 'o')
local epoch = math.max(tonumber(r[1] or 0) + 1, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'e', epoch, 'o', ARGV[1] .. epoch, 'w', ARGV[4])
if r[2] and r[2] ~= '' then tell(r[2], ARGV[1], SERVICE_END, ARGV[3], '') end
return epoch
