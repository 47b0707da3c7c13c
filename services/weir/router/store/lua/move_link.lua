-- Points the index entry of a link id at another queue, or deletes it, if it still names the queue that the caller expects.
-- KEYS 1 the link id's key
-- ARGV 1 recipient id that the caller expects, 2 new recipient id, or '' to delete, 3 '1' on a retry (makes no difference)
-- Answers 1 when it changed the entry, else 0.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('UNLINK', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[2])
return 1
