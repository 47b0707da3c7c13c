-- now(): Redis' clock in milliseconds. Times are compared with this clock only, because the clocks of edges may differ.
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
