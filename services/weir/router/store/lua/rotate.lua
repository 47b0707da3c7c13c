-- Lets a new identity certificate continue a service. The old certificate is refused, at once or after an overlap.
-- KEYS 1 the old fingerprint's key, 2 the new fingerprint's key
-- ARGV 1 old fingerprint, 2 new fingerprint, 3 end of the overlap (Unix time), 4 service id that the new fingerprint
--      may lose because it has no queues, or '', 5 '1' on a retry (makes no difference)
-- Answers the service id, or 1 UNKNOWN: the old certificate has no service, 2 TAKEN: the new one has another service.
-- include: tag
local UNKNOWN, TAKEN = 1, 2
local service = redis.call('HGET', KEYS[1], 's')
if not service then return UNKNOWN end
local other = redis.call('HGET', KEYS[2], 's')
if other and other ~= service then
  if other ~= ARGV[4] then return TAKEN end
  redis.call('UNLINK', tag .. ':service:' .. other)
  redis.call('SREM', tag .. ':services', other)
end
redis.call('UNLINK', KEYS[2])
redis.call('HSET', KEYS[2], 's', service)
redis.call('HSET', KEYS[1], 'until', ARGV[3])
redis.call('HSET', tag .. ':service:' .. service, 'f' .. ARGV[1], ARGV[3], 'f' .. ARGV[2], '')
return service
