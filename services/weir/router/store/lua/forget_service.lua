-- Forgetting a service: deletes its record and its certificates. forget_page has removed its queues before.
-- KEYS 1 the service's record, 2 its fold progress, 3 set of services
-- ARGV 1 service id, 2 '1' on a retry (makes no difference)
-- Answers 1 when there was such a service, else 0.
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 1) == 'f' then redis.call('UNLINK', '{weir}:fp:' .. string.sub(field, 2)) end
end
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[2])
return redis.call('UNLINK', KEYS[1])
