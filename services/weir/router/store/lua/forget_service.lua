-- Forgetting a service: deletes its record and its certificates. forget_page has removed its queues before.
-- KEYS 1 the service's record, 2 its fold progress, 3 set of services
-- ARGV 1 service id, 2 '' or (the sweeper) the first day that counts as used: a service used since then stays, and so does
--      one that never expires; 3 '1' on a retry
-- Answers 1 when there was such a service and it is forgotten, else 0. A retry that finds no service answers 1.
-- include: tag
local seen = redis.call('HMGET', KEYS[1], 'role', 'seen')
if not seen[1] then return ARGV[3] == '1' and 1 or 0 end
if ARGV[2] ~= '' and (not seen[2] or tonumber(seen[2]) >= tonumber(ARGV[2])) then return 0 end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 1) == 'f' then redis.call('UNLINK', tag .. ':fp:' .. string.sub(field, 2)) end
end
redis.call('SREM', KEYS[3], ARGV[1])
redis.call('UNLINK', KEYS[2], KEYS[1])
return 1
