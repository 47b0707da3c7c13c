-- include: tag
-- alive(owner): whether the owner's edge holds its lease. The owner of an edge without a lease counts as gone.
local function alive(owner)
  return owner and owner ~= '' and redis.call('EXISTS', tag .. ':e:' .. string.match(owner, '^[^:]*')) == 1
end
