-- The statuses of subscriptions, the same letters as in packing.py. ERR is followed by its text.
local SUB_NEW, SUB_PENDING, SUB_ACTIVE, SUB_INACTIVE = 'N', 'P', 'A', 'I'
local SUB_END, SUB_DELETED, SUB_AUTH, SUB_SERVICE, SUB_ERR = 'E', 'D', 'U', 'S', 'X'
