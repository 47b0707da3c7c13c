-- damage(list): the error of a key that holds something else than a list; nil if all is well. A script that serves many
-- queues leaves out the queue with the damage. Behind nil: whether the list has an entry.
local function damage(list)
  local first = redis.pcall('LINDEX', list, 0)
  if type(first) == 'table' then return first end
  return nil, first ~= false
end
