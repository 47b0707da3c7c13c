-- Records an SMP server, or another address of it.
-- KEYS 1 the server's record, 2 set of servers, 3 addresses by digest
-- ARGV 1 server id, 2 address, 3 digest of the address, 4 '1' when the address is a candidate, or '',
--      5 '1' on a retry (makes no difference)
-- Answers 0 OK.
-- include: status
redis.call('HSETNX', KEYS[1], 'a', ARGV[2])
redis.call('HSET', KEYS[3], ARGV[3], ARGV[2])
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'n', ARGV[2]) end
redis.call('SADD', KEYS[2], ARGV[1])
return OK
