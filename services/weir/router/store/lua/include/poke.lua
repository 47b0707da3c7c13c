    -- Tells `edge` which partition's inbox to drain. Where Redis has SPUBLISH, the loader takes poke_shard instead.
    redis.call('PUBLISH', 'weir:poke:' .. edge, string.sub(tag, 2, -2))
