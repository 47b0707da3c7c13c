-- How SUB or NSUB changed the association of a queue with a service; the same numbers as Assoc in records.py.
-- SUB answers SUBSCRIBED + association, so that its answer differs from every status.
local ASSOC_NONE, ASSOC_NEW, ASSOC_DUPLICATE, ASSOC_UPDATED, ASSOC_REMOVED = 0, 1, 2, 3, 4
local SUBSCRIBED = 16
