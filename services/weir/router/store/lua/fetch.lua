-- Reads a queue record by the queue's sender id or notifier id. A miss reads a record too, so that it takes as long as a hit.
-- KEYS 1 {p}:s:<sender id> or {p}:n:<notifier id>
-- ARGV 1 '1' on a retry (makes no difference)
-- Answers nil or {recipient id, field, value, …}.
-- include: tag
local id = redis.call('GET', KEYS[1])
local r = redis.call('HGETALL', tag .. ':q:' .. (id or string.sub(KEYS[1], ID_AT)))
if not id or #r == 0 then return false end
table.insert(r, 1, id)
return r
