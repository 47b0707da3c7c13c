-- A session of an SMP server's owner ends, or its service is subscribed.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 mark of the next session, or '': the service is subscribed in this one, 3 '1' on a retry (makes no difference)
-- Answers 0 OK, 3 FENCED.
-- include: status
-- include: works_when_full
if redis.call('HGET', KEYS[1], 'e') ~= ARGV[1] then return FENCED end
if ARGV[2] == '' then
  redis.call('HSET', KEYS[1], 'u', '1')
else
  redis.call('HDEL', KEYS[1], 'u')
  redis.call('HSET', KEYS[1], 'd', ARGV[2])
end
return OK
