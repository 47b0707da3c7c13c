"""Additional encryption of blocks inside TLS, from version 11 on: one key and nonce per block and direction.

Protocol, "Additional transport encryption": HKDF-SHA512 chains started from the session's DH secret.
"""

import hmac

from weir.crypto.boxes import LargeMessage, hsalsa20, secretbox, secretbox_open

try:  # CPython's own SHA-512 makes and copies states faster than OpenSSL's wrapper; the blocks here are short
    from _sha512 import sha512  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # Python 3.12 and later
    from _sha2 import sha512  # type: ignore[import-not-found, unused-ignore, no-redef]

_INIT_INFO = b"SimpleXSbChainInit"
_STEP_1 = b"SimpleXSbChain\x01"
_STEP_2 = b"SimpleXSbChain\x02"
_IPAD = bytes(i ^ 0x36 for i in range(256))
_OPAD = bytes(i ^ 0x5C for i in range(256))
_IPAD_REST = b"\x36" * 64
_OPAD_REST = b"\x5c" * 64
# HMAC states for the empty salt
_salted_inner = sha512(b"\x36" * 128).copy
_salted_outer = sha512(b"\x5c" * 128).copy

_PADDING = b"#" * 0x4000


class ChainKey:
    """The chain of keys of one direction. `next()` advances it and returns the box key and nonce of the next block."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def next(self) -> tuple[bytes, bytes]:
        """HKDF("", chain key, "SimpleXSbChain", 88) = next chain key (32) ‖ key (32) ‖ nonce (24)."""
        inner = _salted_inner()
        inner.update(self._key)
        outer = _salted_outer()
        outer.update(inner.digest())
        prk: bytes = outer.digest()
        inner = sha512(prk.translate(_IPAD) + _IPAD_REST)
        outer = sha512(prk.translate(_OPAD) + _OPAD_REST)
        inner_1 = inner.copy()
        inner_1.update(_STEP_1)
        outer_1 = outer.copy()
        outer_1.update(inner_1.digest())
        first: bytes = outer_1.digest()
        inner.update(first + _STEP_2)
        outer.update(inner.digest())
        self._key = first[:32]
        return first[32:], outer.digest()[:24]


def init_chains(session_id: bytes, secret: bytes) -> tuple[ChainKey, ChainKey]:
    """Return the chains (server → client, client → server). `secret` is `keys.dh_raw` of the two hello keys."""
    prk = hmac.digest(session_id, secret, "sha512")
    out = hmac.digest(prk, _INIT_INFO + b"\x01", "sha512")
    return ChainKey(out[:32]), ChainKey(out[32:])


def seal_block(chain: ChainKey, content: bytes, block_size: int = 16384) -> bytes:
    """Pad and encrypt a block. The content has at most `block_size` − 18 bytes."""
    length = len(content)
    rest = block_size - 18 - length
    if rest < 0:
        raise LargeMessage(f"{length} bytes do not fit into a block of {block_size}")
    key, nonce = chain.next()
    return secretbox(hsalsa20(key), nonce, b"".join((length.to_bytes(2, "big"), content, _PADDING[:rest])))


def open_block(chain: ChainKey, block: bytes) -> bytes | None:
    """Return the content; None if this is not the next block of the chain. The chain advances either way."""
    key, nonce = chain.next()
    padded = secretbox_open(hsalsa20(key), nonce, block)
    if padded is None or len(padded) < 2:
        return None
    end = (padded[0] << 8 | padded[1]) + 2
    return padded[2:end] if end <= len(padded) else None


def pad_block(content: bytes, block_size: int = 16384) -> bytes:
    """Pad a block without the additional encryption: handshakes, versions up to 10, proxies."""
    length = len(content)
    rest = block_size - 2 - length
    if rest < 0:
        raise LargeMessage(f"{length} bytes do not fit into a block of {block_size}")
    return b"".join((length.to_bytes(2, "big"), content, _PADDING[:rest]))
