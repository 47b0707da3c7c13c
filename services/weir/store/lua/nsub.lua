-- NSUB: makes a connection (or the service it speaks for) the owner of a queue's notifications.
-- KEYS 1 queue record, 2 waiting notifications
-- ARGV 1 rev, 2 owner token, 3 'edge:conn:' of the caller, 4 notifier id, 5 service or '', 6 MD5 of the notifier id,
--      7 '1' on a retry: when another connection has taken the notifier since the first attempt, it stays so
-- Answers 1 STALE, 2 GONE, 6 FENCED, or {association, 1 when notifications wait}; associations as in sub.
-- The previous owner gets END; the owner of the service that the notifier left gets END for it.
-- include: ended
-- include: assoc
local q, token, own, id, service = KEYS[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local r = redis.call('HMGET', q, 'r', 'no', 'ns')
if not r[1] then return 2 end
if r[1] ~= ARGV[1] then return 1 end
local joined = service ~= '' and share(service)
if joined and joined[1] ~= token then return 6 end
if ARGV[7] == '1' and r[2] ~= token and ended(token, id) then return {0, 0} end

local waiting = redis.call('EXISTS', KEYS[2])
local was = r[3] or ''
local assoc = service == '' and 0 or 2
if was ~= service then
  assoc = 1
  if was ~= '' then
    assoc = service == '' and 4 or 3
    local left = share(was)
    leave(left, id, ARGV[6])
    if left[1] then tell(left[1], own, 'V', id, was .. ARGV[1]) end
  end
  if joined then join(joined, id, ARGV[6], waiting == 1) end
end
if r[2] and r[2] ~= '' and r[2] ~= token then tell(r[2], own, 'E', id, '') end
redis.call('HSET', q, 'no', service == '' and token or '')
if was ~= service then redis.call('HSET', q, 'ns', service, 'r', tonumber(r[1]) + 1) end
return {assoc, waiting}
