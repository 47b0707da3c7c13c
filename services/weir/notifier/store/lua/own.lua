-- Becomes the owner of an SMP server in its home partition, which draws the epoch.
-- KEYS 1 the server's share of its home partition
-- ARGV 1 edge, 2 mark of the session, 3 an epoch that a partition has, or 0, 4 '1' on a retry
-- Answers the epoch, or 0 while another live edge is the owner. A retry that finds this edge answers its epoch.
-- include: alive
-- include: event
-- include: tell
-- include: works_when_full
local v = KEYS[1]
local r = redis.call('HMGET', v, 'o', 'e')
local edge = r[1] and string.match(r[1], '^[^:]*')
if edge == ARGV[1] and ARGV[4] == '1' and tonumber(r[2]) > tonumber(ARGV[3]) then return tonumber(r[2]) end
if edge and edge ~= ARGV[1] and alive(r[1]) then return 0 end
local epoch = math.max(tonumber(r[2] or 0), tonumber(ARGV[3])) + 1
redis.call('HSET', v, 'o', ARGV[1] .. ':' .. epoch, 'e', epoch, 'd', ARGV[2])
redis.call('HDEL', v, 'u')
return epoch
