-- Disconnect: ends the ownership of a connection in some queues. A queue that has another owner by now stays unchanged.
-- KEYS queue records
-- ARGV 1 owner field ('o' or 'no'), 2 'edge:connection:', 3 '1' on a retry (makes no difference)
-- Answers how many queues it released.
local field, own = ARGV[1], ARGV[2]
local released = 0
for _, q in ipairs(KEYS) do
  local owner = redis.call('HGET', q, field)
  if owner and string.sub(owner, 1, #own) == own then
    redis.call('HDEL', q, field)
    released = released + 1
  end
end
return released
