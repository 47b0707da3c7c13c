-- include: tag
-- share(service): a service's share of this partition as {owner, count, idsHash, key}, false for what it has not.
-- join(share, id, hash, ready) and leave(share, id, hash): associate a queue or a notifier with the service, or end
-- that, and keep its share exact: count c, idsHash h, the set :q, the set :ready.
local function share(service)
  local v = tag .. ':v:' .. service
  local s = redis.call('HMGET', v, 'o', 'c', 'h')
  s[4] = v
  return s
end

local function recount(s, by, hash)
  local a, b, c, d = struct.unpack('>i4i4i4i4', hash)
  if s[3] then
    local e, f, g, h = struct.unpack('>i4i4i4i4', s[3])
    a, b, c, d = bit.bxor(a, e), bit.bxor(b, f), bit.bxor(c, g), bit.bxor(d, h)
  end
  redis.call('HSET', s[4], 'c', tonumber(s[2] or 0) + by, 'h', struct.pack('>i4i4i4i4', a, b, c, d))
end

local function join(s, id, hash, ready)
  if redis.call('SADD', s[4] .. ':q', id) == 1 then recount(s, 1, hash) end
  if ready then redis.call('SADD', s[4] .. ':ready', id) end
end

local function leave(s, id, hash)
  if redis.call('SREM', s[4] .. ':q', id) == 1 then recount(s, -1, hash) end
  redis.call('SREM', s[4] .. ':ready', id)
end
