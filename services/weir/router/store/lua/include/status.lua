-- The outcomes that a script answers instead of a result; the same numbers as Status in records.py.
local OK, STALE, GONE, QUOTA, NO_MSG, CONFLICT, FENCED, EXISTS, DUPLICATE = 0, 1, 2, 3, 4, 5, 6, 7, 8
