-- Counts the queues of some services in one partition.
-- KEYS 1 … the services' shares of the partition
-- ARGV 1 '1' on a retry (makes no difference)
-- Answers the sum.
local queues = 0
for _, v in ipairs(KEYS) do queues = queues + (redis.call('HGET', v, 'c') or 0) end
return queues
