-- include: tag
-- include: event
-- lost(token, id): whether an END of this queue waits for the owner with this token, who therefore had the queue and lost it.
local function lost(token, id)
  local edge, to = string.match(token, '^([^:]*):(.*)$')
  return redis.call('LPOS', tag .. ':i:' .. edge, END .. to .. ':' .. string.char(#id) .. id)
end
