"""Every error and sub-error that ERR carries, and the errors of the handshake."""

from dataclasses import dataclass
from enum import Enum


class Simple(Enum):
    """Errors without parameters."""

    BLOCK = "BLOCK"
    SESSION = "SESSION"
    AUTH = "AUTH"
    SERVICE = "SERVICE"
    CRYPTO = "CRYPTO"
    QUOTA = "QUOTA"
    NO_MSG = "NO_MSG"
    LARGE_MSG = "LARGE_MSG"
    EXPIRED = "EXPIRED"
    INTERNAL = "INTERNAL"
    DUPLICATE_ = "DUPLICATE_"


class CommandError(Enum):
    """`CMD …`."""

    UNKNOWN = "UNKNOWN"
    SYNTAX = "SYNTAX"
    PROHIBITED = "PROHIBITED"
    NO_AUTH = "NO_AUTH"
    HAS_AUTH = "HAS_AUTH"
    NO_ENTITY = "NO_ENTITY"


class BlockingReason(Enum):
    SPAM = "spam"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class BlockingInfo:
    """`BLOCKED reason=…[,notice={"ttl":…}]`. `notice` is the JSON text as it stands on the wire, or None."""

    reason: BlockingReason
    notice: bytes | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    info: BlockingInfo


@dataclass(frozen=True, slots=True)
class Store:
    text: str


class HandshakeError(Enum):
    PARSE = "PARSE"
    IDENTITY = "IDENTITY"
    BAD_AUTH = "BAD_AUTH"
    BAD_SERVICE = "BAD_SERVICE"


class TransportError(Enum):
    """Transport errors without parameters. `HANDSHAKE …`, which has one, is a HandshakeError."""

    BLOCK = "BLOCK"
    VERSION = "VERSION"
    LARGE_MSG = "LARGE_MSG"
    SESSION = "SESSION"
    NO_AUTH = "NO_AUTH"


TransportErrorType = TransportError | HandshakeError


class BrokerErrorTag(Enum):
    """`PROXY BROKER …` without parameters. Weir sends NETWORK without its optional detail."""

    NETWORK = "NETWORK"
    TIMEOUT = "TIMEOUT"
    HOST = "HOST"
    NO_SERVICE = "NO_SERVICE"


@dataclass(frozen=True, slots=True)
class BrokerResponse:
    """`RESPONSE` (unexpected=False) or `UNEXPECTED`, with its text."""

    text: str
    unexpected: bool = False


@dataclass(frozen=True, slots=True)
class BrokerTransport:
    error: TransportErrorType


BrokerErrorType = BrokerErrorTag | BrokerResponse | BrokerTransport


class ProxyErrorTag(Enum):
    BASIC_AUTH = "BASIC_AUTH"
    NO_SESSION = "NO_SESSION"


@dataclass(frozen=True, slots=True)
class ProxyProtocol:
    """`PROXY PROTOCOL …`: an error of the relay, passed on by the proxy."""

    error: "ErrorType"


@dataclass(frozen=True, slots=True)
class ProxyBroker:
    error: BrokerErrorType


@dataclass(frozen=True, slots=True)
class Proxy:
    error: ProxyErrorTag | ProxyProtocol | ProxyBroker


class NameErrorTag(Enum):
    """`NAME …` without parameters."""

    NO_RESOLVER = "NO_RESOLVER"
    NOT_FOUND = "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class NameResolver:
    """`NAME RESOLVER`, with its text."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    error: NameErrorTag | NameResolver


ErrorType = Simple | CommandError | Blocked | Store | Proxy | Name
