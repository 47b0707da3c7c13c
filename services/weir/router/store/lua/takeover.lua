-- A service changes hands in one partition: the higher epoch wins.
-- KEYS 1 the service's share of the partition, 2 its ready set
-- ARGV 1 owner token, 2 epoch, 3 day, 4 '1' on a retry (makes no difference)
-- Answers {count, idsHash or '', ready} or the higher epoch that owns the service.
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 'e', 'c', 'h')
local epoch = tonumber(r[1] or 0)
if epoch > tonumber(ARGV[2]) then return epoch end
redis.call('HSET', KEYS[1], 'o', ARGV[1], 'e', ARGV[2], 'u', ARGV[3])
return {tonumber(r[2] or 0), r[3] or '', redis.call('SCARD', KEYS[2])}
