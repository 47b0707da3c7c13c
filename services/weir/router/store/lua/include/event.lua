-- The kinds of events, the same letters as in events.py.
-- An event in an inbox is: kind ‖ connection ‖ ':' ‖ generation ‖ ':' ‖ 1 byte length of the id ‖ id ‖ rest.
local MSG, END, SERVICE_END, QUEUE_MOVED, DELETED, NOTIFICATIONS, BLOCKED = 'M', 'E', 'S', 'V', 'D', 'N', 'B'
