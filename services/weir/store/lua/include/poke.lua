-- poke(edge): says which partition's inbox to look into. The loader takes poke_shard instead where Redis can SPUBLISH.
local function poke(edge)
  redis.call('PUBLISH', 'weir:poke:' .. edge, string.sub(tag, 2, -2))
end
