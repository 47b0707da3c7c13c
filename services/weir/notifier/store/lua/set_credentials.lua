-- Stores the service credentials for an SMP server, unless it has some.
-- KEYS 1 the server's record
-- ARGV 1 credentials (sealed), 2 '1' on a retry (makes no difference)
-- Answers the stored credentials.
redis.call('HSETNX', KEYS[1], 'c', ARGV[1])
return redis.call('HGET', KEYS[1], 'c')
