-- The statuses of tokens, the same letters as in packing.py. INVALID is followed by the letter of its reason.
-- DELETED: no longer there for anybody, but some of its subscriptions still are.
local NEW, REGISTERED, CONFIRMED, ACTIVE, EXPIRED, INVALID, DELETED = 'n', 'r', 'c', 'a', 'e', 'i', 'x'
