-- The owner of an SMP server has tried an address: it becomes the recorded one, or is no candidate any more.
-- KEYS 1 the server's record
-- ARGV 1 address, 2 '1' when the server was there, or '', 3 '1' on a retry (makes no difference)
-- Answers 0 OK.
-- include: status
-- include: works_when_full
if redis.call('EXISTS', KEYS[1]) == 0 then return OK end
if redis.call('HGET', KEYS[1], 'n') == ARGV[1] then redis.call('HDEL', KEYS[1], 'n') end
if ARGV[2] == '1' then redis.call('HSET', KEYS[1], 'a', ARGV[1]) end
return OK
