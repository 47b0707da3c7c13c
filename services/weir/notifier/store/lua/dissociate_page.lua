-- The service of an SMP server is gone: some of its subscriptions become INACTIVE, and are to be subscribed one by one.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 most subscriptions, 3 '1' on a retry (makes no difference: it does the next ones)
-- Answers -1 FENCED, or how many there were. Subscriptions that have ended are not in the service, and stay as they are.
-- include: sub_status
-- include: subscription
-- include: works_when_full
local v = KEYS[1]
if redis.call('HGET', v, 'e') ~= ARGV[1] then return -1 end
redis.call('HDEL', v, 'u')
local ids = redis.call('SRANDMEMBER', v .. ':q', ARGV[2])
for _, id in ipairs(ids) do
  local s = tag .. ':s:' .. id
  dissociate(v, id, redis.call('HGET', s, 'g'), true)
  redis.call('HSET', s, 'u', SUB_INACTIVE)
  redis.call('HDEL', s, 'a', 'e')
end
save_shares()
return #ids
