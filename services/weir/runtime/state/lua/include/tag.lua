-- tag: the hash tag that every key of this call carries. Behind it a key has a letter and an id: tag:q:id.
-- string.sub(key, ID_AT): the id of such a key.
local tag = string.match(KEYS[1], '^%b{}')
local ID_AT = #tag + 4
