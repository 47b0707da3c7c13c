-- include: tell
-- ended(token, id): whether END for this queue still waits for the owner that the token names: it had it, and lost it.
local function ended(token, id)
  local edge, to = string.match(token, '^([^:]*):(.*)$')
  return redis.call('LPOS', tag .. ':i:' .. edge, 'E' .. to .. ':' .. string.char(#id) .. id)
end
