-- The owner of an SMP server takes over its share of another partition: the higher epoch wins.
-- KEYS 1 the server's share
-- ARGV 1 edge:epoch, 2 epoch, 3 mark of the session, 4 '1' on a retry (makes no difference)
-- Answers 0, or the higher epoch that owns the share. The previous owner, if it is another live edge, hears LOST.
-- include: event
-- include: tell
-- include: works_when_full
local v = KEYS[1]
local r = redis.call('HMGET', v, 'o', 'e')
if r[1] == ARGV[1] then return 0 end
if tonumber(r[2] or 0) >= tonumber(ARGV[2]) then return tonumber(r[2]) end
if r[1] then tell(r[1], string.match(ARGV[1], '^[^:]*:'), LOST, string.sub(v, ID_AT), '') end
redis.call('HSET', v, 'o', ARGV[1], 'e', ARGV[2], 'd', ARGV[3])
redis.call('HDEL', v, 'u')
return 0
