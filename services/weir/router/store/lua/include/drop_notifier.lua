-- include: event
-- include: tell
-- include: share
-- drop_notifier(ntf, owner, service, hash, own): removes a notifier id with its waiting notifications; its owner hears DELD.
-- Answers how many notifications were removed.
local function drop_notifier(ntf, owner, service, hash, own)
  if service and service ~= '' then
    local left = share(service)
    change(left, -1, ntf, hash)
    redis.call('SREM', left.key .. ':ready', ntf)
    owner = left.owner
  end
  if owner and owner ~= '' then tell(owner, own, DELETED, ntf, service or '') end
  local waiting = redis.call('LLEN', tag .. ':f:' .. ntf)
  redis.call('UNLINK', tag .. ':n:' .. ntf, tag .. ':f:' .. ntf)
  redis.call('HINCRBY', tag .. ':k', 'notifiers', -1)
  return waiting
end
