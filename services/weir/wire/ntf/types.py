"""NTF commands and replies, one class each, named as on the wire, and the statuses they carry."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from weir.wire.commands import ServerHost
from weir.wire.errors import ErrorType


class PushProvider(Enum):
    APNS_DEV = b"AD"
    APNS_PROD = b"AP"
    APNS_TEST = b"AT"
    APNS_NULL = b"AN"


class DeviceToken(NamedTuple):
    provider: PushProvider
    token: bytes


class SmpQueueNtf(NamedTuple):
    """A queue to be subscribed to: its router and notifier id."""

    server: ServerHost
    notifier_id: bytes


@dataclass(frozen=True, slots=True)
class TNEW:
    """`verify_key` is the SPKI that will authorise the token's commands, `dh_key` a raw X25519 key."""

    token: DeviceToken
    verify_key: bytes
    dh_key: bytes


@dataclass(frozen=True, slots=True)
class TVFY:
    code: bytes


@dataclass(frozen=True, slots=True)
class TCHK:
    pass


@dataclass(frozen=True, slots=True)
class TRPL:
    token: DeviceToken


@dataclass(frozen=True, slots=True)
class TDEL:
    pass


@dataclass(frozen=True, slots=True)
class TCRN:
    minutes: int


@dataclass(frozen=True, slots=True)
class SNEW:
    """`ntf_key` is the notifier's private key (PKCS8 DER), with which the router will authorise NSUB."""

    token_id: bytes
    queue: SmpQueueNtf
    ntf_key: bytes


@dataclass(frozen=True, slots=True)
class SCHK:
    pass


@dataclass(frozen=True, slots=True)
class SDEL:
    pass


@dataclass(frozen=True, slots=True)
class PING:
    pass


NtfCommand = TNEW | TVFY | TCHK | TRPL | TDEL | TCRN | SNEW | SCHK | SDEL | PING


class TokenStatus(Enum):
    NEW = "NEW"
    REGISTERED = "REGISTERED"
    CONFIRMED = "CONFIRMED"
    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"


class InvalidReason(Enum):
    BAD = "BAD"
    TOPIC = "TOPIC"
    EXPIRED = "EXPIRED"
    UNREGISTERED = "UNREGISTERED"


@dataclass(frozen=True, slots=True)
class TokenInvalid:
    """The reason goes over the wire from version 3 on."""

    reason: InvalidReason | None = None


class SubStatus(Enum):
    NEW = "NEW"
    PENDING = "PENDING"
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"
    END = "END"
    DELETED = "DELETED"
    AUTH = "AUTH"
    SERVICE = "SERVICE"


@dataclass(frozen=True, slots=True)
class SubError:
    text: bytes


@dataclass(frozen=True, slots=True)
class IDTKN:
    token_id: bytes
    dh_key: bytes


@dataclass(frozen=True, slots=True)
class IDSUB:
    sub_id: bytes


@dataclass(frozen=True, slots=True)
class OK:
    pass


@dataclass(frozen=True, slots=True)
class ERR:
    error: ErrorType


@dataclass(frozen=True, slots=True)
class TKN:
    status: TokenStatus | TokenInvalid


@dataclass(frozen=True, slots=True)
class SUB:
    status: SubStatus | SubError


@dataclass(frozen=True, slots=True)
class PONG:
    pass


NtfReply = IDTKN | IDSUB | OK | ERR | TKN | SUB | PONG
