-- include: tag
-- A service's share of this partition: its owner, and the count and idsHash of its queues (or notifiers) here. For a
-- notification router, every SMP server has such a share.
-- share(service): the share; one object for the whole call.
-- change(share, by, id, hash): adds an id to the share (by = 1) or removes it (by = -1). The idsHash is the XOR of the hashes.
-- save_shares(): writes the counts and idsHashes that have changed. Every script that changes a share ends with it.
local shares = {}

local function share(service)
  local s = shares[service]
  if not s then
    local key = tag .. ':v:' .. service
    local r = redis.call('HMGET', key, 'o', 'c', 'h')
    s = {key = key, owner = r[1], count = r[2] or 0, hash = r[3]}
    shares[service] = s
  end
  return s
end

local function change(s, by, id, hash)
  if redis.call(by == 1 and 'SADD' or 'SREM', s.key .. ':q', id) == 0 then return end
  s.count = s.count + by
  s.changed = true
  if not s.hash then
    s.hash = hash
    return
  end
  local a, b, c, d = struct.unpack('>i4i4i4i4', hash)
  local e, f, g, h = struct.unpack('>i4i4i4i4', s.hash)
  s.hash = struct.pack('>i4i4i4i4', bit.bxor(a, e), bit.bxor(b, f), bit.bxor(c, g), bit.bxor(d, h))
end

local function save_shares()
  for _, s in pairs(shares) do
    if s.changed then redis.call('HSET', s.key, 'c', s.count, 'h', s.hash) end
  end
end
