-- NSUB was refused: subscriptions get their status, and are not associated. ERR and SERVICE are tried again later.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 … subscription id, status, last: '1' on a retry (makes no difference)
-- Answers 0 OK, 3 FENCED. Subscriptions that are gone are left out.
-- include: status
-- include: sub_status
-- include: subscription
-- include: works_when_full
local v = KEYS[1]
if redis.call('HGET', v, 'e') ~= ARGV[1] then return FENCED end
for n = 2, #ARGV - 2, 2 do
  local id, status = ARGV[n], ARGV[n + 1]
  local s = tag .. ':s:' .. id
  local md5 = redis.call('HGET', s, 'g')
  if md5 then
    dissociate(v, id, md5, status == SUB_SERVICE or string.sub(status, 1, 1) == SUB_ERR)
    redis.call('HSET', s, 'u', status)
    redis.call('HDEL', s, 'a', 'e')
  end
end
save_shares()
return OK
