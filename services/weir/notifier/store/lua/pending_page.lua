-- Some subscriptions of an SMP server that are to be subscribed one by one, in the order of their ids.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 the id to start after, or '', 3 most subscriptions, 4 '1' on a retry (makes no difference)
-- Answers 3 FENCED, or {last id or '' at the end, then as include/pick.lua}.
-- include: status
-- include: pick
-- include: works_when_full
local v = KEYS[1]
if redis.call('HGET', v, 'e') ~= ARGV[1] then return FENCED end
local start = ARGV[2] == '' and '-' or '(' .. ARGV[2]
local ids = redis.call('ZRANGEBYLEX', v .. ':p', start, '+', 'LIMIT', 0, ARGV[3])
return pick(v, ids, {#ids == tonumber(ARGV[3]) and ids[#ids] or ''})
