-- Forgets a service: its record and its certificates. Its queues are let go page by page before (forget_page).
-- KEYS 1 the service's record, 2 its fold progress, 3 set of services
-- ARGV 1 service id, 2 '1' on a retry (not needed)
-- Answers 1 when there was one.
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 1) == 'f' then redis.call('UNLINK', '{weir}:fp:' .. string.sub(field, 2)) end
end
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[2])
return redis.call('UNLINK', KEYS[1])
