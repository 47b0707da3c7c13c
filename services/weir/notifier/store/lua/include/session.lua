-- session_mark(v): what a subscription made in the present session of the server's owner carries.
local function session_mark(v)
  local r = redis.call('HMGET', v, 'e', 'd')
  return (r[1] or '') .. '.' .. (r[2] or '')
end
