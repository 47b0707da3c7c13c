-- The sweeper: replaces the totals of the fleet by what a complete round has counted.
-- KEYS 1 statistics
-- ARGV 1 messages, 2 waiting notifications, 3 '1' on a retry (makes no difference)
-- Answers 1.
-- include: works_when_full
redis.call('HSET', KEYS[1], 'messages', ARGV[1], 'notifications', ARGV[2])
return 1
