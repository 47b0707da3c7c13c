-- SDEL: deletes a subscription.
-- KEYS 1 subscription
-- ARGV 1 '1' on a retry
-- Answers 0 OK, 1 GONE. A retry that finds nothing answers 0.
-- include: status
-- include: forget_subscription
-- include: works_when_full
local r = redis.call('HMGET', KEYS[1], 't', 's', 'g')
if not r[1] then return ARGV[1] == '1' and OK or GONE end
forget_subscription(string.sub(KEYS[1], ID_AT), r)
save_shares()
return OK
