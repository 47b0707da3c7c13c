"""Values that both SMP and NTF messages contain: keys, routers' addresses, version ranges."""

from weir.crypto.keys import parse_spki, parse_x25519, spki
from weir.wire.address import ServerHost, parse_host
from weir.wire.encoding import (
    Malformed,
    items,
    read_items,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.versions import VersionRange


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


def server_host(server: ServerHost) -> bytes:
    """A router's address: hosts (a list), port, fingerprint of the CA certificate."""
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
