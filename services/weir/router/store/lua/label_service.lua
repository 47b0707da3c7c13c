-- Labels a service, for the operator of the router and for rollups.
-- KEYS 1 the service's record
-- ARGV 1 label, or '' for none, 2 '1' on a retry (makes no difference)
-- Answers 1, or 0 when there is no such service.
-- include: works_when_full
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'label')
else
  redis.call('HSET', KEYS[1], 'label', ARGV[1])
end
return 1
