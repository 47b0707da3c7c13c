-- include: tag
-- include: session
-- include: sub_status
-- pick(v, ids, answer): adds the subscriptions that are not subscribed in this session: id, token id, notifier id, address,
-- key, status. NEW and INACTIVE ones become PENDING; ERR and SERVICE stay visible to the device.
local function pick(v, ids, answer)
  local mark = session_mark(v)
  for _, id in ipairs(ids) do
    local s = tag .. ':s:' .. id
    local r = redis.call('HMGET', s, 't', 'n', 'h', 'k', 'u', 'e', 'a', 's')
    local status = r[5]
    if status and v == tag .. ':v:' .. r[8] and not r[7] and not (status == SUB_ACTIVE and r[6] == mark) then
      if status == SUB_NEW or status == SUB_ACTIVE or status == SUB_INACTIVE then
        status = SUB_PENDING
        redis.call('HSET', s, 'u', status)
      end
      if status == SUB_PENDING or status == SUB_SERVICE or string.sub(status, 1, 1) == SUB_ERR then
        for _, value in ipairs({id, r[1], r[2], r[3], r[4], status}) do answer[#answer + 1] = value end
      end
    end
  end
  return answer
end
