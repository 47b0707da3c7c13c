-- include: tag
-- Makes the script work while Redis' memory is full. Redis then refuses a command that may need memory, unless the script
-- has written before. So the script begins with a write that changes nothing. Scripts that free memory need this, and
-- scripts that change fields of a fixed size: subscriptions, deletions, counters. ACK and expiry begin with a removal
-- anyway. SEND, NEW and scripts that store keys or data are refused when Redis is full.
-- `#!lua flags=allow-oom` would say the same, but Redis 6.2 does not know it.
redis.call('UNLINK', tag .. ':')
