-- Removes the index of a notifier whose subscription is gone.
-- KEYS 1 index of the notifier
-- ARGV 1 subscription id, 2 '1' on a retry (makes no difference)
-- Answers 0 OK.
-- include: status
-- include: works_when_full
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) end
return OK
