-- Forgetting a service: removes some of its queues from the service, in one partition. Its owner gets ENDS with the first page.
-- KEYS 1 the service's share of the partition
-- ARGV 1 service id, 2 role ('M' or 'N'), 3 most queues to remove, 4 '1' to tell the owner,
--      5 '1' on a retry (makes no difference)
-- Answers how many queues were removed. With 0, the share is deleted.
-- include: event
-- include: tell
-- include: works_when_full
local v, service = KEYS[1], ARGV[1]
local owner = redis.call('HGET', v, 'o')
if owner then
  if ARGV[4] == '1' then tell(owner, '', SERVICE_END, service, '') end
  redis.call('HDEL', v, 'o')
end
local ids = redis.call('SPOP', v .. ':q', ARGV[3])
for _, id in ipairs(ids) do
  local field, queue = 'rs', id
  if ARGV[2] == 'N' then field, queue = 'ns', redis.call('GET', tag .. ':n:' .. id) end
  local q = queue and tag .. ':q:' .. queue
  if q and redis.call('HGET', q, field) == service then
    redis.call('HDEL', q, field)
    redis.call('HINCRBY', q, 'r', 1)
  end
end
if #ids == 0 then redis.call('UNLINK', v, v .. ':q', v .. ':ready') end
return #ids
