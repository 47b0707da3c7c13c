    -- Tells `edge` which partition's inbox to drain. Where Redis has SPUBLISH, the loader takes poke_shard instead.
    redis.call('PUBLISH', (string.match(tag, '^{(.*)%.') or 'weir') .. ':poke:' .. edge, string.match(tag, '(%d+)}$'))
