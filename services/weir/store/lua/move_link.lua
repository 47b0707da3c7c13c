-- A link id's index: points it at another queue, or frees it, if it still leads where the caller saw it lead.
-- KEYS 1 the link id's key
-- ARGV 1 recipient id it leads to, 2 recipient id it shall lead to or '', 3 '1' on a retry (not needed)
-- Answers 1 when it did.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('UNLINK', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
