-- Some subscriptions of an SMP server, as far as they are to be subscribed one by one.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 … subscription ids, last: '1' on a retry (makes no difference)
-- Answers 3 FENCED, or as include/pick.lua.
-- include: status
-- include: pick
-- include: works_when_full
if redis.call('HGET', KEYS[1], 'e') ~= ARGV[1] then return FENCED end
return pick(KEYS[1], {unpack(ARGV, 2, #ARGV - 1)}, {})
