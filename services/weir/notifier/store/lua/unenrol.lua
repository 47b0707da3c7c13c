-- Removes a token from the tokens of a device, if it is the one with this key.
-- KEYS 1 the device's tokens
-- ARGV 1 hash of the verify key, 2 token id, 3 '1' on a retry (makes no difference)
-- Answers 0 OK.
-- include: status
if redis.call('HGET', KEYS[1], 'k' .. ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], 'k' .. ARGV[1]) end
return OK
