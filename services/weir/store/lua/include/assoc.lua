-- include: tag
-- join(kind, service, id, hash, ready) and leave(kind, service, id, hash): associate a queue (kind 'rcv') or a notifier
-- ('ntf') with a service, or end that, and keep the service's share of this partition exact: count c, idsHash h, the
-- set :q, the set :ready.
local function recount(kind, v, by, hash)
  local was = redis.call('HMGET', v, 'c', 'h')
  local a, b, c, d = struct.unpack('>i4i4i4i4', hash)
  if was[2] then
    local e, f, g, h = struct.unpack('>i4i4i4i4', was[2])
    a, b, c, d = bit.bxor(a, e), bit.bxor(b, f), bit.bxor(c, g), bit.bxor(d, h)
  end
  redis.call('HINCRBY', tag .. ':k', kind .. '_service_queues', by)
  redis.call('HSET', v, 'c', tonumber(was[1] or 0) + by, 'h', struct.pack('>i4i4i4i4', a, b, c, d))
end

local function join(kind, service, id, hash, ready)
  local v = tag .. ':v:' .. service
  if redis.call('SADD', v .. ':q', id) == 1 then recount(kind, v, 1, hash) end
  if ready then redis.call('SADD', v .. ':ready', id) end
end

local function leave(kind, service, id, hash)
  local v = tag .. ':v:' .. service
  if redis.call('SREM', v .. ':q', id) == 1 then recount(kind, v, -1, hash) end
  redis.call('SREM', v .. ':ready', id)
end
