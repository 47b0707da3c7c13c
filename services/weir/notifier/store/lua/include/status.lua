-- The outcomes that a script answers instead of a result; the same numbers as Outcome in core.py.
local OK, GONE, AUTH, FENCED, STALE, EXISTS = 0, 1, 2, 3, 4, 5
