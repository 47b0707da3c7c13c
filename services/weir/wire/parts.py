"""What several messages have in common: keys, basic auth, link data, servers, certificate chains, ranges."""

from hashlib import sha3_384

from weir.crypto.keys import parse_spki, parse_x25519, spki
from weir.wire.address import parse_host
from weir.wire.commands import LinkData, ServerHost
from weir.wire.encoding import (
    Malformed,
    items,
    large,
    read_items,
    read_large,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.replies import CertChainKey
from weir.wire.versions import VersionRange

# Printable Latin-1 without space, `@`, `:` and `/` (protocol, "basicAuth")
_BASIC_AUTH = bytes(c for c in (*range(0x21, 0x7F), *range(0xA1, 0x100)) if c not in (0xAD, *b"@:/"))


def read_auth_key(data: bytes, at: int) -> tuple[bytes, int]:
    """The key that will authorise commands: a short string with the SPKI of an Ed25519, Ed448 or X25519 key."""
    der, at = read_short(data, at)
    if parse_spki(der) is None:
        raise Malformed
    return der, at


def dh_key(raw: bytes) -> bytes:
    """An X25519 key: a short string with its SPKI."""
    return short(spki("x25519", raw))


def read_dh_key(data: bytes, at: int) -> tuple[bytes, int]:
    der, at = read_short(data, at)
    raw = parse_x25519(der)
    if raw is None:
        raise Malformed
    return raw, at


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


def server_host(server: ServerHost) -> bytes:
    """hosts (a list), port, fingerprint of the CA certificate."""
    return items(tuple(short(host) for host in server.hosts)) + short(server.port) + short(server.key_hash)


def _read_host(data: bytes, at: int) -> tuple[bytes, int]:
    text, at = read_short(data, at)
    host = parse_host(text)
    if host is None:
        raise Malformed
    return host, at


def read_server_host(data: bytes, at: int) -> tuple[ServerHost, int]:
    hosts, at = read_items(data, at, _read_host)
    port, at = read_short(data, at)
    key_hash, at = read_short(data, at)
    return ServerHost(hosts, port, key_hash), at


def version_range(versions: VersionRange) -> bytes:
    return word16(versions.min) + word16(versions.max)


def read_version_range(data: bytes, at: int) -> tuple[VersionRange, int]:
    low, at = read_word16(data, at)
    high, at = read_word16(data, at)
    if low > high:
        raise Malformed
    return VersionRange(low, high), at


def cert_chain_key(value: CertChainKey) -> bytes:
    """certChain (a list of Large) and the signed key (Large)."""
    return items(tuple(large(der) for der in value.chain)) + large(value.signed_key)


def read_cert_chain_key(data: bytes, at: int) -> tuple[CertChainKey, int]:
    chain, at = read_items(data, at, read_large)
    signed_key, at = read_large(data, at)
    return CertChainKey(chain, signed_key), at


def sender_id_of(corr_id: bytes) -> bytes:
    """The sender id that a client may choose in NEW: it follows from the correlation id (protocol, "NEW")."""
    return sha3_384(corr_id).digest()[:24]
