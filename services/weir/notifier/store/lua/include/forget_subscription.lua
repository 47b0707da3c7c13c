-- include: subscription
-- forget_subscription(id, r): deletes a subscription with what the server's share and its token know of it.
-- `r` are its fields t, s, g.
local function forget_subscription(id, r)
  dissociate(tag .. ':v:' .. r[2], id, r[3], false)
  local list = tag .. ':l:' .. r[1]
  for _, entry in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if string.sub(entry, 1, #id) == id then redis.call('LREM', list, 1, entry) end
  end
  redis.call('SREM', tag .. ':u:' .. r[1], id)
  redis.call('UNLINK', tag .. ':s:' .. id)
  redis.call('HINCRBY', tag .. ':k', 'subscriptions', -1)
end
