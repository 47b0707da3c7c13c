-- NSUB: makes a connection (or the service it speaks for) the owner of a queue's notifications.
-- KEYS 1 queue record, 2 waiting notifications
-- ARGV 1 rev, 2 owner token, 3 'edge:connection:' of the caller, 4 notifier id, 5 service or '', 6 MD5 of the notifier id,
--      7 '1' on a retry
-- Answers 1 STALE, 2 GONE, 6 FENCED, or {association, 1 when notifications wait}; associations as in sub.
-- A retry leaves a notifier alone that another connection has taken since the first attempt.
-- The previous owner gets END. The owner of a service that the notifier leaves gets END for this notifier.
-- include: status
-- include: lost
-- include: associate
-- include: works_when_full
local q, token, own, id, service = KEYS[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local r = redis.call('HMGET', q, 'r', 'no', 'ns')
if r[1] ~= ARGV[1] then return r[1] and STALE or GONE end
if service ~= '' and share(service).owner ~= token then return FENCED end
local was, was_in = r[2] or '', r[3] or ''
if ARGV[7] == '1' and was ~= token and lost(token, id) then return {ASSOC_NONE, 0} end

local waiting = redis.call('EXISTS', KEYS[2])
local association = associate(id, was_in, service, ARGV[6], ARGV[1], own, waiting == 1)
if was ~= '' and was ~= token then tell(was, own, END, id, '') end
redis.call('HSET', q, 'no', service == '' and token or '')
if was_in ~= service then redis.call('HSET', q, 'ns', service, 'r', tonumber(r[1]) + 1) end
save_shares()
return {association, waiting}
