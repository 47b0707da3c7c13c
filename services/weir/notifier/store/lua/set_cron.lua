-- TCRN: sets the interval of periodic pushes. The first one comes after one interval.
-- KEYS 1 token, 2 times of the next periodic pushes
-- ARGV 1 minutes, 0 for none, 2 '1' on a retry (makes no difference)
-- Answers 0 OK, 1 GONE.
-- include: status
-- include: due
local t, id = KEYS[1], string.sub(KEYS[1], ID_AT)
local r = push_state(t)
if not r[TOKEN_STATUS] or r[TOKEN_STATUS] == DELETED then return GONE end
if ARGV[1] == '0' then
  redis.call('HDEL', t, 'k')
  redis.call('ZREM', KEYS[2], id)
  redis.call('HSET', t, 'c', 0)
  r[CHECK] = false
  if not due_kind(r) and not r[CLAIM] then stop_waiting(t, r[PROVIDER]) end
  return OK
end
redis.call('ZADD', KEYS[2], now() + ARGV[1] * 60000, id)
redis.call('HSET', t, 'c', ARGV[1])
return OK
