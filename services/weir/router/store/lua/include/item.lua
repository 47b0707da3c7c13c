-- A waiting notification: 8 bytes time (Unix seconds, big-endian) ‖ 24 bytes nonce ‖ metadata. As NtfItem in records.py.
-- struct.unpack('>I4', item, ITEM_TIME): the time. string.sub(item, NONCE, NONCE_END): the nonce.
local ITEM_TIME, NONCE, NONCE_END = 5, 9, 32
