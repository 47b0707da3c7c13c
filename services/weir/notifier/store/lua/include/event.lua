-- The kinds of events, the same letters as in events.py.
-- An event in an inbox is: kind ‖ epoch ‖ ':' ‖ 1 byte length of the id ‖ server id ‖ subscription id (of SUBSCRIBE), or digest
-- of the address (of MOVED).
local SUBSCRIBE, MOVED, LOST = 'S', 'M', 'L'
