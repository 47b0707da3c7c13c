-- damage(list): the error of a key that holds something else than a list; nil if all is well. A script that serves many
-- queues leaves out the queue with the damage.
local function damage(list)
  local first = redis.pcall('LINDEX', list, 0)
  return type(first) == 'table' and first or nil
end
