-- include: alive
-- The state of a subscription after Redis was unavailable; the same numbers as Regained in records.py.
local UNCHANGED, DISPLACED, MISSING, NTFS_WAIT = 0, 1, 2, 3
-- regain(q, field, owner, service, token): makes a connection the owner of a subscription again, unless a service or a living
-- owner has it. A later subscription of the same connection is left alone: it has its own answer.
-- Answers UNCHANGED or DISPLACED, and whether the connection is the owner under this token.
local function regain(q, field, owner, service, token)
  if service and service ~= '' then return DISPLACED, false end
  owner = owner or ''
  local own, gen = string.match(token, '^([^:]*:[^:]*:)(%d+)$')
  if string.sub(owner, 1, #own) == own then
    if tonumber(string.sub(owner, #own + 1)) > tonumber(gen) then return UNCHANGED, false end
  elseif alive(owner) then
    return DISPLACED, false
  end
  if owner ~= token then redis.call('HSET', q, field, token) end
  return UNCHANGED, true
end
