-- Renews an edge's lease in one partition, or takes the lease again when Redis has dropped it.
-- KEYS 1 lease
-- ARGV 1 number of the lease that the edge holds, 2 number of the lease to take if that one is gone, 3 milliseconds,
--      4 '1' on a retry (makes no difference: a lease that the first attempt took is not the one that the edge holds)
-- Answers 1 renewed, 0 taken again, 2 Redis refuses all writes because it cannot write to its disk.
-- Redis allows PEXPIRE and UNLINK while its memory is full, and also SET after one of them.
local held = redis.call('GET', KEYS[1]) == ARGV[1]
local done
if held then
  done = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
else
  done = redis.pcall('UNLINK', KEYS[1])
end
if type(done) == 'table' then return string.find(done.err, 'MISCONF', 1, true) and 2 or done end
if held then return 1 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 0
