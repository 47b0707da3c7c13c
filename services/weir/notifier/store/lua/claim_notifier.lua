-- SNEW: reserves a notifier for a subscription that is about to be made. The reservation expires if it is not made.
-- KEYS 1 index of the notifier
-- ARGV 1 the new subscription's id, 2 id of a subscription that is known to be gone, or '', 3 milliseconds,
--      4 '1' on a retry (makes no difference)
-- Answers 0 OK, or {id of the notifier's subscription, 1 while that one is being made}.
-- include: status
local known = redis.call('GET', KEYS[1])
if known then
  local made = redis.call('PTTL', KEYS[1]) < 0
  if known == ARGV[1] then
    if made then return OK end
  elseif not made or known ~= ARGV[2] then
    return {known, made and 0 or 1}
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return OK
