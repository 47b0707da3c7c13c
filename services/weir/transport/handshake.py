"""The common part of the handshakes of SMP and NTF: values in, values out, no sockets.

After TLS the two sides exchange one block each; only an SMP service waits for a third.

    client                                            server
      │◄──── versions, session id, [signed key] ─────────│   ServerHandshake.hello
      │───── version, expected fingerprint, … ──────────►│   ServerHandshake.accept
      │◄──── SMP services only: the service's id ────────│   ServerHandshake.resume

A protocol completes both classes in its own module: smp_handshake.py and ntf.py.
"""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from weir.crypto.block import ChainKey
from weir.crypto.certificates import (
    Chain,
    ChainError,
    certificate_key,
    fingerprint,
    split_chain,
    validate_chain,
)
from weir.crypto.keys import KeyType, generate
from weir.crypto.session_key import verify_session_key
from weir.transport.identity import OnlineIdentity
from weir.wire.errors import HandshakeError, TransportError, TransportErrorType
from weir.wire.frame import Framing
from weir.wire.versions import VersionRange


class _ClientHello(typing.Protocol):
    @property
    def version(self) -> int: ...
    @property
    def key_hash(self) -> bytes: ...


class _ServerHello(typing.Protocol):
    @property
    def versions(self) -> VersionRange: ...
    @property
    def session_id(self) -> bytes: ...


_C = TypeVar("_C", bound=_ClientHello)
_S = TypeVar("_S", bound=_ServerHello)


@dataclass(slots=True)
class Accepted:
    """A finished handshake on the server's side. `message` is sent to the client before the session begins."""

    session: Framing
    session_key: bytes  # X25519, raw private: authenticators are verified with it
    chains: tuple[ChainKey, ChainKey] | None = None  # block encryption: (sending, receiving)
    message: bytes | None = None


class Refused(NamedTuple):
    """The connection is closed, after `message` if there is one."""

    error: TransportErrorType
    message: bytes | None = None


class Question:
    """A question that the program must answer before the handshake can finish. A protocol that asks has a subclass."""

    __slots__ = ()


class ServerHandshake(ABC, Generic[_C]):
    """The server's side of one handshake. It keeps the online certificate it began with."""

    __slots__ = ("key", "online", "peer_chain", "session_id", "versions")

    legacy_versions: ClassVar[VersionRange]
    """Offered to a client that sent no ALPN."""

    def __init__(self, online: OnlineIdentity, versions: VersionRange) -> None:
        self.online = online
        self.versions = versions
        self.session_id = b""
        self.peer_chain: tuple[bytes, ...] = ()
        self.key = generate("x25519")

    def hello(self, session_id: bytes, peer_chain: tuple[bytes, ...], *, alpn: bool) -> bytes:
        """Return the first message. `peer_chain` is what the client presented in TLS."""
        self.session_id = session_id
        self.peer_chain = peer_chain
        if not alpn:
            self.versions = self.legacy_versions
        return self._encode_hello()

    def accept(self, content: bytes | None) -> Accepted | Question | Refused:
        """Judge the client's hello. None stands for a block that could not be read."""
        hello = HandshakeError.PARSE if content is None else self._decode_hello(content)
        if isinstance(hello, HandshakeError):
            return Refused(hello)
        if hello.key_hash != self.online.fingerprint:
            return Refused(HandshakeError.IDENTITY)
        if not self.versions.min <= hello.version <= self.versions.max:
            return Refused(TransportError.VERSION)
        return self._accept(hello)

    def resume(self, question: Any, answer: Any) -> Accepted | Refused:
        """Finish with the program's answer to a question that `accept` has returned."""
        raise NotImplementedError

    @abstractmethod
    def _encode_hello(self) -> bytes: ...

    @abstractmethod
    def _decode_hello(self, content: bytes) -> _C | HandshakeError: ...

    @abstractmethod
    def _accept(self, hello: _C) -> Accepted | Question | Refused: ...


@dataclass(slots=True)
class Opened:
    """A finished handshake on the client's side."""

    session: Framing
    server_versions: VersionRange
    server_key: bytes | None  # X25519, raw public: authenticators are made with it
    chains: tuple[ChainKey, ChainKey] | None = None  # block encryption: (sending, receiving)


class Reply(NamedTuple):
    """The client's next message, and its session once the handshake is finished."""

    message: bytes | None
    opened: Opened | None


class ClientHandshake(ABC, Generic[_S]):
    """The client's side of one handshake: `begin` after TLS, then `receive` each message until the session is open."""

    def __init__(self, expected: bytes, versions: VersionRange) -> None:
        """`expected` is the fingerprint in the server's address."""
        self._expected = expected
        self._versions = versions
        self._session_id = b""
        self._chain: tuple[bytes, ...] = ()
        self._replied = False
        self.chain_problem: ChainError | None = None
        """Why the server's chain is refused, for people. The protocol has one error for all reasons."""

    def begin(self, session_id: bytes, chain: tuple[bytes, ...]) -> TransportErrorType | None:
        """Check the server's chain in TLS: leaf to CA in order, and the address names its identity certificate."""
        self._session_id = session_id
        self._chain = chain
        self.chain_problem = validate_chain(chain)
        certs = split_chain(chain)
        if self.chain_problem is not None or isinstance(certs, ChainError) or not self._is_server(certs):
            return HandshakeError.IDENTITY
        return None

    def receive(self, content: bytes | None) -> Reply | TransportErrorType:
        """Judge the server's next message. None stands for a block that could not be read."""
        if self._replied:
            return self._finish(content)
        hello = HandshakeError.PARSE if content is None else self._decode_hello(content)
        if isinstance(hello, HandshakeError):
            return hello
        if hello.session_id != self._session_id:
            return TransportError.SESSION
        agreed = hello.versions.compatible(self._acceptable(hello))
        if agreed is None:
            return TransportError.VERSION
        reply = self._reply(hello, agreed.max)
        self._replied = isinstance(reply, Reply)
        return reply

    def _acceptable(self, hello: _S) -> VersionRange:
        return self._versions

    def _finish(self, content: bytes | None) -> Reply | TransportErrorType:
        raise NotImplementedError

    def _is_server(self, certs: Chain) -> bool:
        return certs.leaf != certs.identity and fingerprint(certs.identity) == self._expected

    def _signed_by_server(self, signed_key: bytes) -> bytes | None:
        """The raw X25519 key, if the certificate that TLS was done with has signed it."""
        return signed_session_key(self._chain[0], signed_key, "x25519")

    @abstractmethod
    def _decode_hello(self, content: bytes) -> _S | HandshakeError: ...

    @abstractmethod
    def _reply(self, hello: _S, version: int) -> Reply | TransportErrorType: ...


def valid_chain(chain: tuple[bytes, ...]) -> Chain | None:
    """Check a chain that TLS has accepted unseen."""
    certs = split_chain(chain)
    if isinstance(certs, ChainError) or validate_chain(chain) is not None:
        return None
    return certs


def signed_session_key(leaf: bytes, signed_key: bytes, key_type: KeyType) -> bytes | None:
    """The raw session key, if it is of this type and the leaf certificate's key has signed it."""
    signer = certificate_key(leaf)
    key = None if signer is None else verify_session_key(signer, signed_key)
    return key[1] if key is not None and key[0] == key_type else None
