"""The two messages of the NTF handshake (push notifications protocol, "Transport").

Bytes after the known fields are ignored.
"""

from dataclasses import dataclass

from weir.wire.encoding import Malformed, large, read_large, read_short, read_word16, short, word16
from weir.wire.errors import HandshakeError
from weir.wire.parts import read_version_range, version_range
from weir.wire.versions import NTF_AUTH_BATCH, VersionRange


@dataclass(frozen=True, slots=True)
class NtfServerHello:
    """`signed_key` is the session key signed with the router's certificate, from version 2. TLS carries the chain."""

    versions: VersionRange
    session_id: bytes
    signed_key: bytes | None = None


@dataclass(frozen=True, slots=True)
class NtfClientHello:
    version: int
    key_hash: bytes


def encode_server_hello(hello: NtfServerHello) -> bytes:
    out = version_range(hello.versions) + short(hello.session_id)
    if hello.signed_key is None or hello.versions.max < NTF_AUTH_BATCH:
        return out
    return out + large(hello.signed_key)


def decode_server_hello(data: bytes) -> NtfServerHello | HandshakeError:
    """Unlike in SMP, the key is required from version 2 on."""
    signed_key: bytes | None = None
    try:
        versions, at = read_version_range(data, 0)
        session_id, at = read_short(data, at)
        if versions.max >= NTF_AUTH_BATCH:
            signed_key, at = read_large(data, at)
    except Malformed:
        return HandshakeError.PARSE
    return NtfServerHello(versions, session_id, signed_key)


def encode_client_hello(hello: NtfClientHello) -> bytes:
    return word16(hello.version) + short(hello.key_hash)


def decode_client_hello(data: bytes) -> NtfClientHello | HandshakeError:
    try:
        version, at = read_word16(data, 0)
        key_hash, at = read_short(data, at)
    except Malformed:
        return HandshakeError.PARSE
    return NtfClientHello(version, key_hash)
