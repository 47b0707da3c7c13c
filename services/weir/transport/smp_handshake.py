"""The SMP handshake on the shared frame of handshake.py: block encryption, proxies, service certificates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from weir.crypto.block import ChainKey, init_chains
from weir.crypto.boxes import hsalsa20
from weir.crypto.certificates import ChainError, Issued, fingerprint, split_chain
from weir.crypto.keys import KeyPair, dh_raw, generate
from weir.crypto.session_key import sign_session_key
from weir.transport.handshake import (
    Accepted,
    ClientHandshake,
    Opened,
    Question,
    Refused,
    Reply,
    ServerHandshake,
    signed_session_key,
    valid_chain,
)
from weir.wire.errors import HandshakeError, TransportErrorType
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.handshake import (
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
from weir.wire.smp.replies import CertChainKey
from weir.wire.smp.session import Session
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
    """A service as the router knows it. `key` verifies the service's signatures (raw Ed25519)."""

    service_id: bytes
    role: ServiceRole
    cert_hash: bytes
    key: bytes


@dataclass(slots=True)
class SmpAccepted(Accepted):
    session_secret: bytes | None = None
    proxy: bool = False
    service: PeerService | None = None


@dataclass(slots=True)
class ServiceOffer(Question):
    """A client has proved that it holds a service's certificate. Which ServiceId does the service have?"""

    role: ServiceRole
    chain: tuple[bytes, ...]
    fingerprint: bytes
    key: bytes
    accepted: SmpAccepted


class SmpServerHandshake(ServerHandshake[ClientHello]):
    __slots__ = ()

    legacy_versions = SMP_LEGACY_RANGE

    def _encode_hello(self) -> bytes:
        key = None
        if self.versions.max >= AUTH_CMDS:
            key = CertChainKey(self.online.chain, self.online.sign_session_key(self.key.spki))
        return encode_server_hello(ServerHello(self.versions, self.session_id, key))

    def _decode_hello(self, content: bytes) -> ClientHello | HandshakeError:
        return decode_client_hello(content)

    def _accept(self, hello: ClientHello) -> SmpAccepted | ServiceOffer | Refused:
        session = Session(self.session_id, hello.version)
        secret, chains = _agree(session, self.key, hello.key, hello.proxy)
        accepted = SmpAccepted(session, self.key.private, chains, session_secret=secret, proxy=hello.proxy)
        return accepted if hello.service is None else self._check_service(hello.service, accepted)

    def _check_service(self, service: ClientService, accepted: SmpAccepted) -> ServiceOffer | Refused:
        chain = service.cert_key.chain
        if chain != self.peer_chain:
            return _refused(HandshakeError.BAD_AUTH)
        certs = valid_chain(chain)
        if certs is None:
            return _refused(HandshakeError.BAD_AUTH)
        key = signed_session_key(certs.leaf, service.cert_key.signed_key, "ed25519")
        if key is None:
            return _refused(HandshakeError.BAD_AUTH)
        return ServiceOffer(service.role, chain, fingerprint(certs.identity), key, accepted)

    def resume(self, question: ServiceOffer, answer: bytes | HandshakeError) -> SmpAccepted | Refused:
        """`answer` is the ServiceId, or why the service is refused."""
        if isinstance(answer, HandshakeError):
            return _refused(answer)
        accepted = question.accepted
        accepted.service = PeerService(answer, question.role, question.fingerprint, question.key)
        accepted.message = encode_service_response(ServiceAccepted(answer))
        return accepted


def _refused(error: TransportErrorType) -> Refused:
    """A service learns why it is refused. Every other client is only disconnected."""
    return Refused(error, encode_service_response(ServiceRefused(error)))


def _agree(
    session: Session, own: KeyPair, peer: bytes | None, proxy: bool
) -> tuple[bytes | None, tuple[ChainKey, ChainKey] | None]:
    """The session's box key, and from version 11 on the chains (server → client, client → server) unless a proxy's."""
    if peer is None or session.version < AUTH_CMDS:
        return None, None
    agreed = dh_raw(peer, own.private)
    encrypted = session.version >= ENCRYPTED_BLOCK and not proxy
    return hsalsa20(agreed), init_chains(session.session_id, agreed) if encrypted else None


@dataclass(frozen=True)
class ServiceCredentials:
    """A service's certificate chain (DER, leaf first) and the leaf's key."""

    role: ServiceRole
    chain: tuple[bytes, ...]
    key: KeyPair

    @classmethod
    def self_signed(cls, role: ServiceRole, issued: Issued) -> ServiceCredentials:
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
class SmpOpened(Opened):
    cert_key: CertChainKey | None = None
    session_secret: bytes | None = None
    service: ClientServiceSession | None = None


class SmpClientHandshake(ClientHandshake[ServerHello]):
    def __init__(
        self,
        expected: bytes,
        versions: VersionRange,
        *,
        proxy: bool = False,
        service: ServiceCredentials | None = None,
    ) -> None:
        super().__init__(expected, versions)
        self._proxy = proxy
        self._credentials = service
        self._key = generate("x25519")
        self._service_key: KeyPair | None = None
        self._opened: SmpOpened | None = None

    def _decode_hello(self, content: bytes) -> ServerHello | HandshakeError:
        return decode_server_hello(content)

    def _acceptable(self, hello: ServerHello) -> VersionRange:
        if self._proxy and hello.versions.max < PROXY_HANDSHAKE:
            # A relay that old encrypts blocks for a proxy too, and a client's longest messages would not fit.
            return VersionRange(self._versions.min, max(self._versions.min, DELETED_EVENT))
        return self._versions

    def _reply(self, hello: ServerHello, version: int) -> Reply | TransportErrorType:
        server_key = None
        if hello.key is not None:
            server_key = self._check_key(hello.key)
            if server_key is None:
                return HandshakeError.BAD_AUTH
        service = self._offer_service(version)
        session = Session(self._session_id, version)
        secret, chains = _agree(session, self._key, server_key, self._proxy)
        if chains is not None:
            chains = (chains[1], chains[0])
        opened = SmpOpened(session, hello.versions, server_key, chains, cert_key=hello.key, session_secret=secret)
        self._opened = opened
        own = ClientHello(version, self._expected, self._key.public, self._proxy, service)
        return Reply(encode_client_hello(own), opened if service is None else None)

    def _finish(self, content: bytes | None) -> Reply | TransportErrorType:
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
        return Reply(None, self._opened)

    def _check_key(self, key: CertChainKey) -> bytes | None:
        certs = split_chain(key.chain)
        if isinstance(certs, ChainError) or not self._is_server(certs):
            return None
        return self._signed_by_server(key.signed_key)

    def _offer_service(self, version: int) -> ClientService | None:
        credentials = self._credentials
        if credentials is None:
            return None
        if version < (RCV_SERVICE if credentials.role is ServiceRole.MESSAGING else SERVICE_CERTS):
            return None
        self._service_key = generate("ed25519")
        signed = sign_session_key(credentials.key, self._service_key.spki)
        return ClientService(credentials.role, CertChainKey(credentials.chain, signed))
