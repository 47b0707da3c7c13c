-- The loader puts this before every script on a cluster. While a slot moves to another node, some of its keys are on one
-- node and some on the other: a script that builds such a key would fail half done. A key that exists nowhere tells whether
-- the slot is moving, because Redis refuses it too. TRYAGAIN makes the edge send the call again later.
if type(redis.pcall('EXISTS', string.match(KEYS[1], '^%b{}') .. ':')) == 'table' then
  return redis.error_reply('TRYAGAIN the slot is moving')
end
