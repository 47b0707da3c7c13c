-- The sweeper: removes a forgotten service's share of one partition, unless somebody uses the service again by now.
-- KEYS 1 the service's share of the partition
-- ARGV 1 '1' on a retry (makes no difference)
-- Answers 1 when nothing of the share is left, else 0.
-- include: alive
local v = KEYS[1]
local r = redis.call('HMGET', v, 'o', 'c')
if alive(r[1]) or tonumber(r[2] or 0) > 0 then return 0 end
redis.call('UNLINK', v, v .. ':q', v .. ':ready')
return 1
