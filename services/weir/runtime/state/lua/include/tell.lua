-- include: tag
-- tell(owner, own, kind, id, rest): leaves an event in the inbox of the owner's edge. It does nothing when the owner is the
-- calling connection (own = 'edge:connection:', or '' for nobody) or when the owner's edge is dead. Answers whether it did.
-- An edge removes an event with the drain after the one that found it. So the first two events of an inbox poke.
local function tell(owner, own, kind, id, rest)
  if own ~= '' and string.sub(owner, 1, #own) == own then return false end
  local edge, to = string.match(owner, '^([^:]*):(.*)$')
  if redis.call('EXISTS', tag .. ':e:' .. edge) == 0 then return false end
  local event = kind .. to .. ':' .. string.char(#id) .. id .. rest
  if redis.call('RPUSH', tag .. ':i:' .. edge, event) <= 2 then
    -- include: poke
  end
  return true
end
