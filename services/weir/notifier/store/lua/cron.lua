-- Makes periodic pushes due, and sets the time of the next ones. One that was missed is not made up for.
-- KEYS 1 times of the next periodic pushes
-- ARGV 1 most tokens, 2 '1' on a retry (makes no difference: the first attempt has moved the times)
-- Answers how many tokens it looked at.
-- include: due
-- include: works_when_full
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now(), 'LIMIT', 0, ARGV[1])
for _, id in ipairs(ids) do
  local t = tag .. ':t:' .. id
  local r = push_state(t)
  local minutes = tonumber(r[12] or 0)
  if minutes == 0 or not r[TOKEN_STATUS] or r[TOKEN_STATUS] == DELETED then
    redis.call('ZREM', KEYS[1], id)
  else
    redis.call('ZADD', KEYS[1], now() + minutes * 60000, id)
    if r[TOKEN_STATUS] == ACTIVE then make_due(t, r, 'k') end
  end
end
return #ids
