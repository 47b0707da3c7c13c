-- The hash tag that every key of this call carries.
local tag = string.match(KEYS[1], '^%b{}')
