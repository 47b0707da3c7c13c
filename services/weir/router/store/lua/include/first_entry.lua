-- include: tag
-- include: entry
-- first_entry(list, before): the first message that came at or after `before`. Older messages are removed with their
-- bodies. Answers the entry or false, and how many messages were removed.
local function first_entry(list, before)
  local first = redis.call('LINDEX', list, 0)
  if not first or struct.unpack('>I4', first, TIME) >= before then return first, 0 end
  local bodies = {}
  for n, entry in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if struct.unpack('>I4', entry, TIME) >= before then break end
    bodies[n] = tag .. ':b:' .. string.sub(entry, 1, MESSAGE_ID)
  end
  redis.call('UNLINK', unpack(bodies))
  redis.call('LTRIM', list, #bodies, -1)
  return redis.call('LINDEX', list, 0), #bodies
end
