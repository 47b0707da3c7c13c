"""NTF commands and replies, one class each, named as on the wire, and the statuses that they carry."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from weir.wire.address import ServerHost
from weir.wire.declaration import Authorisation, Declaration
from weir.wire.errors import ErrorType
from weir.wire.versions import NTF_RANGE

T = TypeVar("T")

DECLARATIONS: Final[dict[type, Declaration]] = {}


def declare(
    authorisation: Authorisation = Authorisation.REQUIRED, *, has_entity: bool = True
) -> Callable[[type[T]], type[T]]:
    """Record the declaration of a command class. The class's name is the tag. Version 1 introduced all commands."""

    def record(kind: type[T]) -> type[T]:
        DECLARATIONS[kind] = Declaration(kind.__name__.encode(), NTF_RANGE.min, authorisation, has_entity)
        return kind

    return record


class PushProvider(Enum):
    APNS_DEV = b"AD"
    APNS_PROD = b"AP"
    APNS_TEST = b"AT"
    APNS_NULL = b"AN"
    WEB_PUSH = b"WP"


class DeviceToken(NamedTuple):
    """`token` is opaque, but for WEB_PUSH: there it is a subscription (`wire.ntf.device_token`)."""

    provider: PushProvider
    token: bytes


class SmpQueueNtf(NamedTuple):
    """A queue to be subscribed to: its router and notifier id."""

    server: ServerHost
    notifier_id: bytes


@declare(has_entity=False)
@dataclass(frozen=True, slots=True)
class TNEW:
    """`verify_key` is the SPKI of the key that will authorise the token's commands; `dh_key` is a raw X25519 key."""

    token: DeviceToken
    verify_key: bytes
    dh_key: bytes


@declare()
@dataclass(frozen=True, slots=True)
class TVFY:
    code: bytes


@declare()
@dataclass(frozen=True, slots=True)
class TCHK:
    pass


@declare()
@dataclass(frozen=True, slots=True)
class TRPL:
    token: DeviceToken


@declare()
@dataclass(frozen=True, slots=True)
class TDEL:
    pass


@declare()
@dataclass(frozen=True, slots=True)
class TCRN:
    minutes: int


@declare(has_entity=False)
@dataclass(frozen=True, slots=True)
class SNEW:
    """`ntf_key` is the notifier's private key (PKCS8 DER). The notification router authorises NSUB with it."""

    token_id: bytes
    queue: SmpQueueNtf
    ntf_key: bytes


@declare()
@dataclass(frozen=True, slots=True)
class SCHK:
    pass


@declare()
@dataclass(frozen=True, slots=True)
class SDEL:
    pass


@declare(Authorisation.FORBIDDEN, has_entity=False)
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
    """The reason is sent from version 3 on."""

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
