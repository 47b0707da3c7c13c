-- Finds the service of an identity certificate, or creates it.
-- KEYS 1 the fingerprint's key, 2 the new service's record, 3 set of services
-- ARGV 1 fingerprint, 2 role, 3 new service id, 4 now (Unix time), 5 day of this use, or '' for a new service that never
--      expires, 6 '1' on a retry (makes no difference)
-- Answers the service id, or 1 OTHER_ROLE, or 2 REPLACED: another certificate has taken this one's place.
-- include: tag
local OTHER_ROLE, REPLACED = 1, 2
local was = redis.call('HMGET', KEYS[1], 's', 'until')
if was[1] then
  if was[2] and tonumber(was[2]) <= tonumber(ARGV[4]) then return REPLACED end
  local record = tag .. ':service:' .. was[1]
  local r = redis.call('HMGET', record, 'role', 'seen')
  if r[1] ~= ARGV[2] then return OTHER_ROLE end
  -- A full Redis may refuse this write. That must not refuse the service.
  if r[2] and ARGV[5] ~= '' and r[2] ~= ARGV[5] then redis.pcall('HSET', record, 'seen', ARGV[5]) end
  return was[1]
end
redis.call('HSET', KEYS[1], 's', ARGV[3])
redis.call('HSET', KEYS[2], 'role', ARGV[2], 'created', ARGV[4], 'f' .. ARGV[1], '')
if ARGV[5] ~= '' then redis.call('HSET', KEYS[2], 'seen', ARGV[5]) end
redis.call('SADD', KEYS[3], ARGV[3])
return ARGV[3]
