-- The sweeper: replaces the totals of the fleet by what a complete round has counted, unless the statistics have changed.
-- KEYS 1 statistics
-- ARGV 1 messages, 2 waiting notifications, 3 messages ever sent, as the statistics had them; 4 messages,
--      5 waiting notifications as counted; 6 '1' on a retry (makes no difference)
-- Answers 1 corrected, 0 the statistics have changed.
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 'messages', 'notifications', 'msgSent')
for n = 1, 3 do
  if tonumber(r[n] or 0) ~= tonumber(ARGV[n]) then return 0 end
end
redis.call('HSET', KEYS[1], 'messages', ARGV[4], 'notifications', ARGV[5])
return 1
