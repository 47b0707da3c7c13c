-- TVFY: all other tokens of the device are to be deleted. Of two tokens that do this at a time, one wins.
-- KEYS 1 the device's tokens
-- ARGV 1 hash of the verify key, 2 token id, 3 '1' on a retry (makes no difference)
-- Answers 2 AUTH: another token was verified first, or the ids of tokens that are not deleted yet.
-- include: status
-- include: works_when_full
local d = KEYS[1]
if redis.call('HGET', d, 'k' .. ARGV[1]) ~= ARGV[2] then return AUTH end
local others = {}
local flat = redis.call('HGETALL', d)
for n = 1, #flat, 2 do
  local field, id = flat[n], flat[n + 1]
  if string.sub(field, 1, 1) == 'x' then
    others[#others + 1] = string.sub(field, 2)
  elseif id ~= ARGV[2] then
    redis.call('HDEL', d, field)
    redis.call('HSET', d, 'x' .. id, '')
    others[#others + 1] = id
  end
end
return others
