-- Answers of ACK, the same numbers as in messages.py: EXPIRED if the message had expired, else REMOVED + its flags.
local EXPIRED, REMOVED = 15, 16
