-- Disconnect: ends the ownership of a connection in its service, in one partition.
-- KEYS 1 the service's share of the partition
-- ARGV 1 owner token, 2 '1' on a retry (makes no difference)
-- Answers 1 when the connection was the owner, else 0.
if redis.call('HGET', KEYS[1], 'o') ~= ARGV[1] then return 0 end
return redis.call('HDEL', KEYS[1], 'o')
