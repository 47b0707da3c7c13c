-- How many queues services have in one partition.
-- KEYS 1 … the services' shares of the partition
-- ARGV 1 '1' on a retry (not needed: it changes nothing)
-- Answers their counts together.
local queues = 0
for _, v in ipairs(KEYS) do queues = queues + (redis.call('HGET', v, 'c') or 0) end
return queues
