-- NSUB was answered: subscriptions are ACTIVE in this session, and associated with the service or not.
-- KEYS 1 the server's share
-- ARGV 1 epoch, 2 '1' when associated, or '', 3 … subscription ids, last: '1' on a retry (makes no difference)
-- Answers 0 OK, 3 FENCED. Subscriptions that are gone are left out.
-- include: status
-- include: session
-- include: sub_status
-- include: subscription
-- include: works_when_full
local v = KEYS[1]
if redis.call('HGET', v, 'e') ~= ARGV[1] then return FENCED end
local mark = session_mark(v)
for n = 3, #ARGV - 1 do
  local id = ARGV[n]
  local s = tag .. ':s:' .. id
  local md5 = redis.call('HGET', s, 'g')
  if md5 then
    if ARGV[2] == '1' then
      associate(v, id, md5)
      redis.call('HSET', s, 'u', SUB_ACTIVE, 'a', '1', 'e', mark)
    else
      dissociate(v, id, md5, true)
      redis.call('HSET', s, 'u', SUB_ACTIVE, 'e', mark)
      redis.call('HDEL', s, 'a')
    end
  end
end
save_shares()
return OK
