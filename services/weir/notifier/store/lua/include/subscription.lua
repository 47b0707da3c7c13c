-- include: tag
-- include: share
-- associate(v, id, md5): the server's service has the subscription. It is counted, and not pending.
-- dissociate(v, id, md5, retry): the service does not have it. With `retry`, it is to be subscribed one by one.
-- Scripts that use these end with save_shares().
local function associate(v, id, md5)
  change(share(string.sub(v, ID_AT)), 1, id, md5)
  redis.call('ZREM', v .. ':p', id)
end

local function dissociate(v, id, md5, retry)
  change(share(string.sub(v, ID_AT)), -1, id, md5)
  if retry then redis.call('ZADD', v .. ':p', 0, id) else redis.call('ZREM', v .. ':p', id) end
end
