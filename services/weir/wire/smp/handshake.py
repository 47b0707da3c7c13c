"""The messages of the SMP handshake as bytes (protocol, "SMP handshake"). Bytes after the known fields are ignored."""

from dataclasses import dataclass

from weir.wire.encoding import (
    Malformed,
    boolean,
    maybe,
    read_boolean,
    read_byte,
    read_maybe,
    read_short,
    read_word16,
    short,
    word16,
)
from weir.wire.error_codec import decode_transport_error, encode_transport_error
from weir.wire.errors import HandshakeError, TransportErrorType
from weir.wire.parts import dh_key, read_dh_key, read_version_range, version_range
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.parts import cert_chain_key, read_cert_chain_key
from weir.wire.smp.replies import CertChainKey
from weir.wire.versions import AUTH_CMDS, PROXY_HANDSHAKE, SERVICE_CERTS, VersionRange

_ROLES = {role.value[0]: role for role in ServiceRole}


@dataclass(frozen=True, slots=True)
class ServerHello:
    """The first message. `key` is the certificate chain and the signed session key; None if the range ends below 7."""

    versions: VersionRange
    session_id: bytes
    key: CertChainKey | None = None


@dataclass(frozen=True, slots=True)
class ClientService:
    role: ServiceRole
    cert_key: CertChainKey


@dataclass(frozen=True, slots=True)
class ClientHello:
    """The second message. `key_hash` is the fingerprint that the client expects; `key` its raw X25519 session key."""

    version: int
    key_hash: bytes
    key: bytes | None = None
    proxy: bool = False
    service: ClientService | None = None


@dataclass(frozen=True, slots=True)
class ServiceAccepted:
    """The third message: the router has accepted the service's certificate. Only services get a third message."""

    service_id: bytes


@dataclass(frozen=True, slots=True)
class ServiceRefused:
    """The third message: the router has refused the service's certificate."""

    error: TransportErrorType


ServiceResponse = ServiceAccepted | ServiceRefused


def encode_server_hello(hello: ServerHello) -> bytes:
    """smpVersionRange sessionIdentifier [certChain signedServerKey]."""
    out = version_range(hello.versions) + short(hello.session_id)
    if hello.key is None or hello.versions.max < AUTH_CMDS:
        return out
    return out + cert_chain_key(hello.key)


def decode_server_hello(data: bytes) -> ServerHello | HandshakeError:
    try:
        versions, at = read_version_range(data, 0)
        session_id, at = read_short(data, at)
    except Malformed:
        return HandshakeError.PARSE
    key: CertChainKey | None = None
    if versions.max >= AUTH_CMDS:
        try:
            key, at = read_cert_chain_key(data, at)
        except Malformed:
            key = None  # The key is optional: ignore bytes that are not a key, as all bytes after the known fields.
    return ServerHello(versions, session_id, key)


def _service(service: ClientService) -> bytes:
    return service.role.value + cert_chain_key(service.cert_key)


def encode_client_hello(hello: ClientHello) -> bytes:
    """smpVersion keyHash [clientKey] from 7, proxyServer from 14, clientService from 16."""
    out = word16(hello.version) + short(hello.key_hash)
    if hello.version >= AUTH_CMDS and hello.key is not None:
        out += dh_key(hello.key)
    if hello.version >= PROXY_HANDSHAKE:
        out += boolean(hello.proxy)
    if hello.version >= SERVICE_CERTS:
        out += maybe(hello.service, _service)
    return out


def _read_service(data: bytes, at: int) -> tuple[ClientService, int]:
    char, at = read_byte(data, at)
    role = _ROLES.get(char)
    if role is None:
        raise Malformed
    cert_key, at = read_cert_chain_key(data, at)
    return ClientService(role, cert_key), at


def _read_optional_key(data: bytes, at: int) -> tuple[bytes | None, int]:
    """No marker says whether the key is present: it is present if the bytes are a key."""
    try:
        return read_dh_key(data, at)
    except Malformed:
        return None, at


def decode_client_hello(data: bytes) -> ClientHello | HandshakeError:
    key: bytes | None = None
    proxy = False
    service: ClientService | None = None
    try:
        version, at = read_word16(data, 0)
        key_hash, at = read_short(data, at)
        if version >= AUTH_CMDS:
            key, at = _read_optional_key(data, at)
        if version >= PROXY_HANDSHAKE:
            proxy, at = read_boolean(data, at)
        if version >= SERVICE_CERTS:
            service, at = read_maybe(data, at, _read_service)
    except Malformed:
        return HandshakeError.PARSE
    return ClientHello(version, key_hash, key, proxy, service)


def encode_service_response(response: ServiceResponse) -> bytes:
    """`R` serviceId, or `E` transportError."""
    if isinstance(response, ServiceAccepted):
        return b"R" + short(response.service_id)
    return b"E" + encode_transport_error(response.error)


def decode_service_response(data: bytes) -> ServiceResponse | HandshakeError:
    if data[:1] == b"R":
        try:
            return ServiceAccepted(read_short(data, 1)[0])
        except Malformed:
            return HandshakeError.PARSE
    if data[:1] == b"E":
        words = data[1:].split(b" ", 2)
        error = decode_transport_error(b" ".join(words[:2]) if words[0] == b"HANDSHAKE" else words[0])
        if error is not None:
            return ServiceRefused(error)
    return HandshakeError.PARSE
