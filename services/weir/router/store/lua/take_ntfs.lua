-- Answers waiting notifications to their owner. Removes those that the owner has sent on, up to and including the one named.
-- KEYS 1 waiting notifications
-- ARGV 1 owner token, 2 the notifier's queue record or (service) the service's share: the key, 3 its owner field,
--      4 notifier id, 5 nonce of the last one that was sent on, or '', 6 expire before, 7 most to answer, 8 service or '',
--      9 '1' on a retry (makes no difference)
-- Answers {removed as sent, removed as expired, item, …}, or {0, 0} to a connection that is not the owner.
-- include: tag
-- include: item
local f = KEYS[1]
if redis.call('HGET', ARGV[2], ARGV[3]) ~= ARGV[1] then return {0, 0} end
local most = tonumber(ARGV[7])
local before = tonumber(ARGV[6])
local items = redis.call('LRANGE', f, 0, most - 1)
local done = 0
if ARGV[5] ~= '' then
  for n, item in ipairs(items) do
    if string.sub(item, NONCE, NONCE_END) == ARGV[5] then done = n end
  end
end
local drop = done
while items[drop + 1] and struct.unpack('>I4', items[drop + 1], ITEM_TIME) < before do drop = drop + 1 end
if drop > 0 then
  redis.call('LTRIM', f, drop, -1)
  items = redis.call('LRANGE', f, 0, most - 1)
end
if #items == 0 and ARGV[8] ~= '' then redis.call('SREM', ARGV[2] .. ':ready', ARGV[4]) end
return {done, drop - done, unpack(items)}
