-- include: tag
-- include: now
-- include: token_status
-- The push of a token. A field v, m or k of its record says that a verification, a message push or a periodic push is due;
-- the value is the token's counter q when it became due. The field o names the claim of the edge that sends the push.
-- push_state(t): the fields that the functions below take; TOKEN_STATUS … TRIES are their places.
-- due_kind(r): the kind of the push that is due, or nil, and its number. Messages and periodic pushes need an ACTIVE token.
-- waits(provider): the set of tokens with a push of this provider: token id, time when anybody may claim the push.
-- claim_push(t, r, claim, ms): claims the push that is due for so many milliseconds. Answers the push.
-- answer_push(t, r, claim): {kind, number, claim, token id, status, provider, rev, verify key, DH keys, device, cron, entry …}.
local TOKEN_STATUS, PROVIDER, VERIFICATION, MESSAGES, CHECK, CLAIM, TRIES = 1, 2, 3, 4, 5, 6, 7

local function push_state(t)
  return redis.call('HMGET', t, 'u', 'p', 'v', 'm', 'k', 'o', 'n', 'r', 'f', 'x', 'd', 'c')
end

local function due_kind(r)
  if r[VERIFICATION] then return 'v', r[VERIFICATION] end
  if r[TOKEN_STATUS] ~= ACTIVE then return nil end
  if r[MESSAGES] then return 'm', r[MESSAGES] end
  if r[CHECK] then return 'k', r[CHECK] end
end

local function waits(provider)
  return tag .. ':w:' .. provider
end

local function answer_push(t, r, claim)
  local kind, number = due_kind(r)
  local id = string.sub(t, ID_AT)
  local push = {kind, number, claim, id, r[TOKEN_STATUS], r[PROVIDER], r[8], r[9], r[10], r[11], r[12]}
  if kind == 'm' then
    for _, entry in ipairs(redis.call('LRANGE', tag .. ':l:' .. id, 0, -1)) do push[#push + 1] = entry end
  end
  return push
end

local function claim_push(t, r, claim, ms)
  redis.call('HSET', t, 'o', claim)
  redis.call('ZADD', waits(r[PROVIDER]), now() + ms, string.sub(t, ID_AT))
  return answer_push(t, r, claim)
end
