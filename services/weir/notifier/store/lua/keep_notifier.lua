-- SNEW: the subscription is made, so the index of its notifier stays.
-- KEYS 1 index of the notifier
-- ARGV 1 subscription id, 2 '1' on a retry (makes no difference)
-- Answers 0 OK, 2 AUTH: the notifier has another subscription.
-- include: status
local known = redis.call('GET', KEYS[1])
if known and known ~= ARGV[1] then return AUTH end
redis.call('SET', KEYS[1], ARGV[1])
return OK
