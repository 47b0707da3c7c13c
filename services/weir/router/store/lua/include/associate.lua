-- include: association
-- include: event
-- include: tell
-- include: share
-- associate(id, was, service, hash, rev, own, ready): moves a queue or a notifier from the service `was` to `service` ('' for
-- none). `ready` says that something waits for it. The owner of the service that it leaves hears of it; `rev` makes that
-- event unique. Answers the association.
local function associate(id, was, service, hash, rev, own, ready)
  if was == service then return service == '' and ASSOC_NONE or ASSOC_DUPLICATE end
  if was ~= '' then
    local left = share(was)
    change(left, -1, id, hash)
    redis.call('SREM', left.key .. ':ready', id)
    if left.owner then tell(left.owner, own, QUEUE_MOVED, id, was .. rev) end
  end
  if service == '' then return ASSOC_REMOVED end
  local joined = share(service)
  change(joined, 1, id, hash)
  if ready then redis.call('SADD', joined.key .. ':ready', id) end
  return was == '' and ASSOC_NEW or ASSOC_UPDATED
end
