-- include: tell
-- include: assoc
-- drop_notifier(ntf, owner, service, hash, own): removes a notifier id with what waits for it and tells its owner DELD.
-- Answers how many notifications were dropped.
local function drop_notifier(ntf, owner, service, hash, own)
  if service and service ~= '' then
    local left = share(service)
    leave(left, ntf, hash)
    owner = left[1]
  end
  if owner and owner ~= '' then tell(owner, own, 'D', ntf, service or '') end
  local waiting = redis.call('LLEN', tag .. ':f:' .. ntf)
  redis.call('UNLINK', tag .. ':n:' .. ntf, tag .. ':f:' .. ntf)
  redis.call('HINCRBY', tag .. ':k', 'notifiers', -1)
  return waiting
end
