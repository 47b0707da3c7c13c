-- poke(edge): as poke, within the partition's own slot.
local function poke(edge)
  redis.call('SPUBLISH', tag .. ':poke:' .. edge, string.sub(tag, 2, -2))
end
