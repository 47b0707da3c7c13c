-- include: push
-- make_due(t, r, kind): a push of this kind is due now. A claim, and the time of a retry, stay as they are.
-- stop_waiting(t, provider): nothing is due.
local function make_due(t, r, kind)
  redis.call('HSET', t, kind, redis.call('HINCRBY', t, 'q', 1))
  redis.call('ZADD', waits(r[PROVIDER]), 'NX', now(), string.sub(t, ID_AT))
end

local function stop_waiting(t, provider)
  redis.call('HDEL', t, 'o', 'n')
  redis.call('ZREM', waits(provider), string.sub(t, ID_AT))
end
