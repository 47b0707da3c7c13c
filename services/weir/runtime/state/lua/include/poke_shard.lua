    -- Tells `edge` which partition's inbox to drain, on a channel in the partition's own slot.
    redis.call('SPUBLISH', tag .. ':poke:' .. edge, string.match(tag, '(%d+)}$'))
