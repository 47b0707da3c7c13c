"""Values that several SMP messages contain: basic auth, link data, certificate chains, sender ids."""

from hashlib import sha3_384

from weir.wire.encoding import Malformed, items, large, read_items, read_large, read_short
from weir.wire.smp.commands import LinkData
from weir.wire.smp.replies import CertChainKey

# Printable Latin-1 without space, `@`, `:` and `/` (protocol, "basicAuth")
_BASIC_AUTH = bytes(c for c in (*range(0x21, 0x7F), *range(0xA1, 0x100)) if c not in (0xAD, *b"@:/"))


def is_basic_auth(value: bytes) -> bool:
    return not value.translate(None, _BASIC_AUTH)


def read_basic_auth(data: bytes, at: int) -> tuple[bytes, int]:
    value, at = read_short(data, at)
    if not is_basic_auth(value):
        raise Malformed
    return value, at


def link_data(data: LinkData) -> bytes:
    return large(data.fixed) + large(data.user)


def read_link_data(data: bytes, at: int) -> tuple[LinkData, int]:
    fixed, at = read_large(data, at)
    user, at = read_large(data, at)
    return LinkData(fixed, user), at


def cert_chain_key(value: CertChainKey) -> bytes:
    """certChain (a list of Large) and the signed key (Large)."""
    return items(tuple(large(der) for der in value.chain)) + large(value.signed_key)


def read_cert_chain_key(data: bytes, at: int) -> tuple[CertChainKey, int]:
    chain, at = read_items(data, at, read_large)
    signed_key, at = read_large(data, at)
    return CertChainKey(chain, signed_key), at


def sender_id_of(corr_id: bytes) -> bytes:
    """Derive the sender id that a client may choose in NEW from the correlation id of NEW (protocol, "NEW")."""
    return sha3_384(corr_id).digest()[:24]
