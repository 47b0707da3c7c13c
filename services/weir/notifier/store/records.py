"""The values that the notifier's store takes and returns, and the events that it brings to an edge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from weir.crypto.keys import public_of
from weir.wire.address import ServerHost
from weir.wire.ntf.push import PNMessageData
from weir.wire.ntf.types import (
    DeviceToken,
    PushProvider,
    SmpQueueNtf,
    SubError,
    SubStatus,
    TokenInvalid,
    TokenStatus,
)

MAX_NOTIFICATIONS: Final = 6
"""Notifications that a token keeps and that a push carries."""

VERIFIABLE: Final = (TokenStatus.REGISTERED, TokenStatus.CONFIRMED, TokenStatus.ACTIVE)
"""Statuses of a token that allow TVFY."""

RESUBSCRIBED: Final = (SubStatus.NEW, SubStatus.PENDING, SubStatus.ACTIVE, SubStatus.INACTIVE)
"""Statuses of a subscription that is subscribed to in every session. When associated, the subscription is counted."""


class Status(Enum):
    """The outcome of a call."""

    OK = 0
    GONE = 1  # the token or subscription does not exist (any more): the client gets AUTH
    AUTH = 2  # a wrong code, a wrong status, or another token's notifier


class Fenced(Exception):
    """Another edge owns the SMP server by now, or this edge in a later epoch."""


@dataclass(frozen=True, slots=True)
class Token:
    """A device's token. `rev` changes with the device token, the code and the status."""

    id: bytes
    partition: int
    rev: int
    device: DeviceToken
    status: TokenStatus | TokenInvalid
    verify_key: bytes  # SPKI
    dh_private: bytes  # raw X25519
    dh_secret: bytes  # the box key for pushes
    code: bytes
    cron: int  # minutes, 0 for none

    @property
    def dh_public(self) -> bytes:
        return public_of("x25519", self.dh_private)

    @property
    def may_verify(self) -> bool:
        return self.status in VERIFIABLE

    @property
    def may_subscribe(self) -> bool:
        """Whether SNEW, SCHK and SDEL are allowed: in ACTIVE, INVALID and EXPIRED."""
        return isinstance(self.status, TokenInvalid) or self.status in (TokenStatus.ACTIVE, TokenStatus.EXPIRED)

    def __repr__(self) -> str:
        return f"Token({self.status})"  # ids and keys stay out of logs and tracebacks


class Registered(NamedTuple):
    """The answer to TNEW. Its verification push is due: `pushes.claim(token)` takes it."""

    token: Token
    created: bool  # or else an earlier TNEW has registered it


@dataclass(frozen=True, slots=True)
class Subscription:
    """A token's subscription to the notifications of a queue. The status is that at the time of reading."""

    id: bytes
    token_id: bytes
    server_id: bytes
    queue: SmpQueueNtf  # with the SMP server's address as the device gave it
    ntf_key: bytes  # PKCS8
    status: SubStatus | SubError
    associated: bool

    def __repr__(self) -> str:
        return f"Subscription({self.status}, associated={self.associated})"


class Created(NamedTuple):
    """The answer to SNEW."""

    subscription: Subscription
    created: bool  # or else an earlier SNEW of the same token has made it
    owned: bool  # whether an edge owns the SMP server, which then gets a SubscribeEvent if `created`


class PushKind(Enum):
    """The letters are those of the scripts."""

    VERIFICATION = b"v"
    MESSAGES = b"m"
    CHECK = b"k"  # the periodic push


@dataclass(frozen=True, slots=True)
class Push:
    """A push that this edge has claimed. Nobody else sends it until the claim expires."""

    token: Token
    kind: PushKind
    messages: tuple[PNMessageData, ...]  # of MESSAGES: oldest first, at most 6
    seq: int
    claim: bytes

    def __repr__(self) -> str:
        return f"Push({self.kind.name}, {len(self.messages)} messages)"


class Received(NamedTuple):
    """The answer to NMSG. Without `push`, which the edge has claimed, a push waits in Redis or is under way."""

    status: Status
    push: Push | None = None


# SMP servers


@dataclass(frozen=True, slots=True)
class Server:
    """An SMP server: the identity behind `address.key_hash`, wherever its address moves."""

    id: bytes
    address: ServerHost
    candidate: ServerHost | None  # the newest SNEW's address, when it has no host of `address`
    service_id: bytes | None
    state: Mapping[str, str] = field(default_factory=dict)  # shown on the page; see Servers.set_state


@dataclass(frozen=True, slots=True)
class ServiceKeys:
    """The certificate with which this router is a service of one SMP server, and its key; both PEM."""

    certificate: bytes
    private_key: bytes

    def __repr__(self) -> str:
        return "ServiceKeys()"


@dataclass(frozen=True, slots=True)
class Totals:
    """The subscriptions of an SMP server. Count and hash are exact."""

    count: int  # associated and to be resubscribed: what NSUBS sends
    ids_hash: bytes
    pending: int  # to be subscribed one by one


# Events


class SubscribeEvent(NamedTuple):
    """SNEW made a subscription to a server that this edge owns."""

    server_id: bytes
    epoch: int
    sub_id: bytes


class ServerMovedEvent(NamedTuple):
    """A server that this edge owns has a candidate for its address."""

    server_id: bytes
    epoch: int


class OwnershipLostEvent(NamedTuple):
    """Another edge owns the server now."""

    server_id: bytes
    epoch: int


Event = SubscribeEvent | ServerMovedEvent | OwnershipLostEvent

__all__ = [
    "MAX_NOTIFICATIONS",
    "RESUBSCRIBED",
    "VERIFIABLE",
    "Created",
    "DeviceToken",
    "Event",
    "Fenced",
    "OwnershipLostEvent",
    "PNMessageData",
    "Push",
    "PushKind",
    "PushProvider",
    "Received",
    "Registered",
    "Server",
    "ServerMovedEvent",
    "ServiceKeys",
    "Status",
    "SubscribeEvent",
    "Subscription",
    "Token",
    "Totals",
]
