-- The owner of an SMP server hears that the server has a candidate for its address.
-- KEYS 1 the server's share of its home partition
-- ARGV 1 digest of the address, 2 '1' on a retry
-- Answers 1 when there is a live owner, else 0. A retry leaves no second event while the first one waits.
-- include: event
-- include: tell
local owner = redis.call('HGET', KEYS[1], 'o')
if not owner then return 0 end
local edge, epoch = string.match(owner, '^([^:]*):(.*)$')
local id = string.sub(KEYS[1], ID_AT)
local event = MOVED .. epoch .. ':' .. string.char(#id) .. id .. ARGV[1]
if ARGV[2] == '1' and redis.call('LPOS', tag .. ':i:' .. edge, event) then return 1 end
return tell(owner, '', MOVED, id, ARGV[1]) and 1 or 0
