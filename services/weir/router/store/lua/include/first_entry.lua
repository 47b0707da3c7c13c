-- include: tag
-- include: entry
-- first_entry(list, before): the first message that came at or after `before`. Older messages are removed with their
-- bodies. Answers the entry or false, and how many messages were removed.
-- Messages are removed in chunks: Lua cannot pass more than about 8,000 arguments to a command.
local function first_entry(list, before)
  local removed = 0
  local first = redis.call('LINDEX', list, 0)
  while first and struct.unpack('>I4', first, TIME) < before do
    local bodies = {}
    for n, entry in ipairs(redis.call('LRANGE', list, 0, 999)) do
      if struct.unpack('>I4', entry, TIME) >= before then break end
      bodies[n] = tag .. ':b:' .. string.sub(entry, 1, MESSAGE_ID)
    end
    redis.call('UNLINK', unpack(bodies))
    redis.call('LTRIM', list, #bodies, -1)
    removed = removed + #bodies
    first = redis.call('LINDEX', list, 0)
  end
  return first, removed
end
