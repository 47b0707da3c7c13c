-- Deletes some subscriptions of a deleted token; the token too when none is left.
-- KEYS 1 token, 2 its subscriptions
-- ARGV 1 most subscriptions, 2 '1' on a retry
-- Answers {server id, notifier id, subscription id, …}, empty when nothing is left. A retry answers the next ones: the sweeper
--      frees the notifiers of those before.
-- include: token_status
-- include: forget_subscription
-- include: works_when_full
local t, u = KEYS[1], KEYS[2]
local answer = {}
if redis.call('HGET', t, 'u') ~= DELETED then return answer end
for _, id in ipairs(redis.call('SRANDMEMBER', u, ARGV[1])) do
  local r = redis.call('HMGET', tag .. ':s:' .. id, 't', 's', 'g', 'n')
  if r[1] then
    forget_subscription(id, r)
    answer[#answer + 1] = r[2]
    answer[#answer + 1] = r[4]
    answer[#answer + 1] = id
  else
    redis.call('SREM', u, id)
  end
end
save_shares()
if redis.call('EXISTS', u) == 0 then
  redis.call('UNLINK', t)
  redis.call('HINCRBY', tag .. ':k', 'tokens', -1)
end
return answer
