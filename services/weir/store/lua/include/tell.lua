-- include: tag
-- include: poke
-- tell(owner, own, kind, id, rest): leaves an event in the inbox of an owner's edge, unless the owner is the
-- calling connection (own = 'edge:conn:') or its edge is dead. Answers whether it did.
-- The edge leaves one event that it has handled where it is and removes it with its next look, so the first two in an
-- inbox poke. An event is kind ‖ conn:gen ‖ ':' ‖ length of id ‖ id ‖ rest.
local function tell(owner, own, kind, id, rest)
  if own ~= '' and string.sub(owner, 1, #own) == own then return false end
  local edge, to = string.match(owner, '^([^:]*):(.*)$')
  if redis.call('EXISTS', tag .. ':e:' .. edge) == 0 then return false end
  local event = kind .. to .. ':' .. string.char(#id) .. id .. rest
  if redis.call('RPUSH', tag .. ':i:' .. edge, event) <= 2 then poke(edge) end
  return true
end
