-- include: tag
-- head(list, before): the first message that came at or after `before`; older ones are dropped with their bodies.
-- Answers the entry or false, and how many were dropped.
local function head(list, before)
  local first = redis.call('LINDEX', list, 0)
  if not first or struct.unpack('>I4', first, 29) >= before then return first, 0 end
  local bodies = {}
  for n, entry in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if struct.unpack('>I4', entry, 29) >= before then break end
    bodies[n] = tag .. ':b:' .. string.sub(entry, 1, 24)
  end
  redis.call('UNLINK', unpack(bodies))
  redis.call('LTRIM', list, #bodies, -1)
  return redis.call('LINDEX', list, 0), #bodies
end
