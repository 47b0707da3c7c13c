-- Put before every script on a cluster: while the slot moves from one node to the other, nothing is done. Keys that a script
-- builds may be gone already, and Redis ends it there, half done. A key that is nowhere tells: it too would be elsewhere.
if type(redis.pcall('EXISTS', string.match(KEYS[1], '^%b{}') .. ':')) == 'table' then
  return redis.error_reply('TRYAGAIN the slot is moving')
end
