"""The SMP handshake as values in, values out: what each side says and how it judges the other (no sockets)."""

from dataclasses import dataclass
from typing import NamedTuple

from weir.crypto.block import ChainKey, init_chains
from weir.crypto.boxes import hsalsa20
from weir.crypto.certificates import (
    Chain,
    ChainError,
    Issued,
    certificate_key,
    fingerprint,
    split_chain,
    validate_chain,
)
from weir.crypto.keys import KeyPair, KeyType, dh_raw, generate
from weir.crypto.session_key import sign_session_key, verify_session_key
from weir.transport.identity import OnlineIdentity
from weir.wire.commands import ServiceRole
from weir.wire.errors import HandshakeError, TransportError, TransportErrorType
from weir.wire.handshake import (
    ClientHello,
    ClientService,
    ServerHello,
    ServiceAccepted,
    ServiceRefused,
    decode_client_hello,
    decode_server_hello,
    decode_service_response,
    encode_client_hello,
    encode_server_hello,
    encode_service_response,
)
from weir.wire.replies import CertChainKey
from weir.wire.session import Session
from weir.wire.versions import (
    AUTH_CMDS,
    DELETED_EVENT,
    ENCRYPTED_BLOCK,
    PROXY_HANDSHAKE,
    RCV_SERVICE,
    SERVICE_CERTS,
    SMP_LEGACY_RANGE,
    VersionRange,
)


class PeerService(NamedTuple):
    """A service as the router knows it. `key` verifies its signatures (raw Ed25519)."""

    service_id: bytes
    role: ServiceRole
    cert_hash: bytes
    key: bytes


@dataclass(slots=True)
class Accepted:
    """A finished handshake, the router's side. `chains` are (sending, receiving)."""

    session: Session
    session_key: bytes
    session_secret: bytes | None
    proxy: bool
    chains: tuple[ChainKey, ChainKey] | None
    service: PeerService | None = None


@dataclass(slots=True)
class ServiceOffer:
    """A client that proved to hold a service's certificate; it is accepted once the service has an id."""

    role: ServiceRole
    chain: tuple[bytes, ...]
    fingerprint: bytes
    key: bytes
    accepted: Accepted


class Refused(NamedTuple):
    """`told`: a service hears of what is wrong with it; everybody else is just disconnected."""

    error: TransportErrorType
    told: bool = False


class ServerHandshake:
    """The router's side of one handshake."""

    __slots__ = ("_chain", "_key", "_session_id", "_versions", "online")

    def __init__(self, online: OnlineIdentity, versions: VersionRange) -> None:
        self.online = online
        self._versions = versions
        self._session_id = b""
        self._chain: tuple[bytes, ...] = ()
        self._key = generate("x25519")

    def hello(self, session_id: bytes, chain: tuple[bytes, ...], *, alpn: bool) -> bytes:
        """`chain` is what the client presented in TLS."""
        self._session_id = session_id
        self._chain = chain
        if not alpn:
            self._versions = SMP_LEGACY_RANGE
        key = None
        if self._versions.max >= AUTH_CMDS:
            key = CertChainKey(self.online.chain, self.online.sign_session_key(self._key.spki))
        return encode_server_hello(ServerHello(self._versions, session_id, key))

    def accept(self, content: bytes | None) -> Accepted | ServiceOffer | Refused:
        hello = HandshakeError.PARSE if content is None else decode_client_hello(content)
        if isinstance(hello, HandshakeError):
            return Refused(hello)
        if hello.key_hash != self.online.fingerprint:
            return Refused(HandshakeError.IDENTITY)
        if not self._versions.min <= hello.version <= self._versions.max:
            return Refused(TransportError.VERSION)
        secret, chains = _agree(self._session_id, hello.version, self._key, hello.key, hello.proxy)
        accepted = Accepted(Session(self._session_id, hello.version), self._key.private, secret, hello.proxy, chains)
        if hello.service is None:
            return accepted
        return self._check_service(hello.service, accepted)

    def _check_service(self, service: ClientService, accepted: Accepted) -> ServiceOffer | Refused:
        chain = service.cert_key.chain
        refused = Refused(HandshakeError.BAD_AUTH, told=True)
        if chain != self._chain:
            return refused
        certs = _valid(chain)
        if certs is None:
            return refused
        key = _signed_key(certs.leaf, service.cert_key.signed_key, "ed25519")
        if key is None:
            return refused
        return ServiceOffer(service.role, chain, fingerprint(certs.identity), key, accepted)

    @staticmethod
    def service_accepted(offer: ServiceOffer, service_id: bytes) -> tuple[bytes, Accepted]:
        """The third message, and the session it opens."""
        offer.accepted.service = PeerService(service_id, offer.role, offer.fingerprint, offer.key)
        return encode_service_response(ServiceAccepted(service_id)), offer.accepted

    @staticmethod
    def service_refused(error: TransportErrorType) -> bytes:
        return encode_service_response(ServiceRefused(error))


def _valid(chain: tuple[bytes, ...]) -> Chain | None:
    """TLS accepted whatever came; this is where a chain must hold."""
    certs = split_chain(chain)
    if isinstance(certs, ChainError) or validate_chain(chain) is not None:
        return None
    return certs


def _signed_key(leaf: bytes, signed_key: bytes, key_type: KeyType) -> bytes | None:
    """The raw session key, when it is of this type and the leaf's key has signed it."""
    signer = certificate_key(leaf)
    key = None if signer is None else verify_session_key(signer, signed_key)
    return key[1] if key is not None and key[0] == key_type else None


def _agree(
    session_id: bytes, version: int, own: KeyPair, peer: bytes | None, proxy: bool
) -> tuple[bytes | None, tuple[ChainKey, ChainKey] | None]:
    """The session's box key, and from 11 on the chains (server → client, client → server) unless it is a proxy's."""
    if peer is None or version < AUTH_CMDS:
        return None, None
    agreed = dh_raw(peer, own.private)
    chains = init_chains(session_id, agreed) if version >= ENCRYPTED_BLOCK and not proxy else None
    return hsalsa20(agreed), chains


@dataclass(frozen=True)
class ServiceCredentials:
    """A service's certificate chain (DER, leaf first) and the leaf's key."""

    role: ServiceRole
    chain: tuple[bytes, ...]
    key: KeyPair

    @classmethod
    def self_signed(cls, role: ServiceRole, issued: Issued) -> "ServiceCredentials":
        return cls(role, (issued.certificate,), issued.key)

    @property
    def cert_hash(self) -> bytes:
        """The identity certificate's fingerprint."""
        return fingerprint(self.chain[min(1, len(self.chain) - 1)])


class ClientServiceSession(NamedTuple):
    """A service as the client itself knows it; `key_pair` signs its commands."""

    service_id: bytes
    role: ServiceRole
    cert_hash: bytes
    key_pair: KeyPair

    @property
    def key(self) -> bytes:
        return self.key_pair.private


@dataclass(slots=True)
class Opened:
    """A finished handshake, the client's side. `chains` are (sending, receiving)."""

    session: Session
    server_versions: VersionRange
    server_key: bytes | None
    cert_key: CertChainKey | None
    session_secret: bytes | None
    chains: tuple[ChainKey, ChainKey] | None
    service: ClientServiceSession | None = None


class ClientHandshake:
    """The client's side of one handshake: `reply` to the server's hello, then `finish` if a third message is due."""

    def __init__(
        self,
        fingerprint: bytes,
        versions: VersionRange,
        *,
        proxy: bool = False,
        service: ServiceCredentials | None = None,
    ) -> None:
        self._fingerprint = fingerprint
        self._versions = versions
        self._proxy = proxy
        self._credentials = service
        self._key = generate("x25519")
        self._service_key: KeyPair | None = None
        self._opened: Opened | None = None

    def check_chain(self, chain: tuple[bytes, ...]) -> TransportErrorType | None:
        """The server's chain in TLS: leaf to CA in order, and the address names its identity certificate."""
        certs = _valid(chain)
        if certs is None or not self._is_server(certs):
            return HandshakeError.IDENTITY
        return None

    def reply(
        self, content: bytes | None, session_id: bytes, chain: tuple[bytes, ...]
    ) -> tuple[bytes, Opened | None] | TransportErrorType:
        """The client's hello, and the session unless the service's answer is still to come."""
        hello = HandshakeError.PARSE if content is None else decode_server_hello(content)
        if isinstance(hello, HandshakeError):
            return hello
        if hello.session_id != session_id:
            return TransportError.SESSION
        versions = self._versions
        if self._proxy and hello.versions.max < PROXY_HANDSHAKE:
            # Such a relay would encrypt blocks for a proxy too, and a client's longest messages would not fit.
            versions = VersionRange(versions.min, max(versions.min, DELETED_EVENT))
        agreed = hello.versions.compatible(versions)
        if agreed is None:
            return TransportError.VERSION
        server_key = None
        if hello.key is not None:
            server_key = self._check_key(hello.key, chain)
            if server_key is None:
                return HandshakeError.BAD_AUTH
        version = agreed.max
        service = self._offer_service(version)
        secret, chains = _agree(session_id, version, self._key, server_key, self._proxy)
        if chains is not None:
            chains = (chains[1], chains[0])
        self._opened = Opened(Session(session_id, version), hello.versions, server_key, hello.key, secret, chains)
        own = ClientHello(version, self._fingerprint, self._key.public, self._proxy, service)
        return encode_client_hello(own), self._opened if service is None else None

    def finish(self, content: bytes | None) -> Opened | TransportErrorType:
        response = HandshakeError.PARSE if content is None else decode_service_response(content)
        if isinstance(response, HandshakeError):
            return response
        if isinstance(response, ServiceRefused):
            return response.error
        assert self._opened is not None and self._credentials is not None and self._service_key is not None
        credentials = self._credentials
        self._opened.service = ClientServiceSession(
            response.service_id, credentials.role, credentials.cert_hash, self._service_key
        )
        return self._opened

    def _check_key(self, key: CertChainKey, chain: tuple[bytes, ...]) -> bytes | None:
        certs = split_chain(key.chain)
        if isinstance(certs, ChainError) or not self._is_server(certs):
            return None
        # The key counts when the certificate that TLS was done with signed it.
        return _signed_key(chain[0], key.signed_key, "x25519")

    def _is_server(self, certs: Chain) -> bool:
        return certs.leaf != certs.identity and fingerprint(certs.identity) == self._fingerprint

    def _offer_service(self, version: int) -> ClientService | None:
        credentials = self._credentials
        if credentials is None:
            return None
        if version < (RCV_SERVICE if credentials.role is ServiceRole.MESSAGING else SERVICE_CERTS):
            return None
        self._service_key = generate("ed25519")
        signed = sign_session_key(credentials.key, self._service_key.spki)
        return ClientService(credentials.role, CertChainKey(credentials.chain, signed))
