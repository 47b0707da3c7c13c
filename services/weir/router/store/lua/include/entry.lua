-- An entry of a message list: 24 bytes message id ‖ 8 bytes time (Unix seconds, big-endian) ‖ 1 byte flags ‖ trace context.
-- The same layout as Entry in records.py. Constants instead of functions: Redis would make each function anew in every call.
-- string.sub(entry, 1, MESSAGE_ID): the message id. string.byte(entry, FLAGS): the flags.
-- struct.unpack('>I4', entry, TIME): the time, of which the lower 4 bytes suffice until the year 2106. The upper 4 bytes are 0
-- in a list. In an event they are the microseconds of the second in which the SEND came (send.lua).
local MESSAGE_ID, TIME, FLAGS = 24, 29, 33
local NOTIFICATION, QUOTA_MARKER = 1, 2 -- flags
