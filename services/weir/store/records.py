"""What the store's calls take and answer, and the events it brings to an edge."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from weir.wire.commands import LinkData, QueueMode, ServiceRole
from weir.wire.errors import BlockingInfo


class Status(Enum):
    """The outcome of a script. STALE: the record moved on since it was read, fetch it and verify again."""

    OK = 0
    STALE = 1
    GONE = 2
    QUOTA = 3
    NO_MSG = 4
    CONFLICT = 5
    FENCED = 6  # the service has another owner than the token says: take it over first
    EXISTS = 7  # NEW: this very queue was created by an earlier attempt
    DUPLICATE = 8  # NEW, NKEY: an id is taken


class Assoc(Enum):
    """What a SUB or NSUB did to the queue's service (the four cases of the specification)."""

    NONE = 0
    NEW = 1
    DUPLICATE = 2
    UPDATED = 3
    REMOVED = 4


class Unavailable(Exception):
    """Redis did not answer in time. Hot calls pass UNAVAILABLE to their callback, cold calls raise it."""


UNAVAILABLE: Final = Unavailable("the store did not answer in time")


class StoreError(Exception):
    """The store cannot be used as configured; the text is one line for the operator."""


class EntityStatus(Enum):
    ACTIVE = "active"
    OFF = "off"


class Owner(NamedTuple):
    """A connection of this edge and the generation of its subscription (for services: the epoch)."""

    conn: int
    gen: int


@dataclass(slots=True)
class QueueRecord:
    """A queue's credentials. `rev` changes with every field but `day`; the store updates both in place."""

    rcv_id: bytes
    snd_id: bytes
    partition: int
    rev: int
    rcv_keys: tuple[bytes, ...]
    dh_secret: bytes
    snd_key: bytes | None
    mode: QueueMode | None
    link_id: bytes | None
    ntf_id: bytes | None
    ntf_key: bytes | None
    ntf_dh_secret: bytes | None
    status: EntityStatus | BlockingInfo
    day: int
    rcv_service: bytes | None
    ntf_service: bytes | None


class NewNotifier(NamedTuple):
    ntf_id: bytes
    key: bytes
    dh_secret: bytes


class NewLink(NamedTuple):
    link_id: bytes
    data: LinkData


@dataclass(slots=True)
class NewQueue:
    """`answer` with `request` (a hash of the client's NEW) makes a repeated NEW with a client-chosen sender id
    idempotent."""

    rcv_id: bytes
    snd_id: bytes
    rcv_key: bytes
    dh_secret: bytes
    day: int
    mode: QueueMode | None = None
    notifier: NewNotifier | None = None
    link: NewLink | None = None
    owner: Owner | None = None
    service: bytes | None = None
    request: bytes = b""
    answer: bytes = b""


class NewResult(NamedTuple):
    """OK with the record; EXISTS with the answer that the first attempt kept; DUPLICATE; FENCED."""

    status: Status
    record: QueueRecord | None = None
    answer: bytes | None = None


NOTIFICATION: Final = 1
QUOTA_MARKER: Final = 2


class Entry(NamedTuple):
    """A stored message without its body. The body of a quota marker is not stored: whoever delivers it makes it."""

    msg_id: bytes
    ts: int
    flags: int
    trace: bytes = b""

    @property
    def notification(self) -> bool:
        return bool(self.flags & NOTIFICATION)

    @property
    def quota(self) -> bool:
        return bool(self.flags & QUOTA_MARKER)

    def pack(self) -> bytes:
        return b"%b%b%c%b" % (self.msg_id, self.ts.to_bytes(8, "big"), self.flags, self.trace)

    @staticmethod
    def parse(raw: bytes) -> "Entry":
        return Entry(raw[:24], int.from_bytes(raw[24:32], "big"), raw[32], raw[33:])


class NtfItem(NamedTuple):
    """A waiting notification: what NMSG carries, and when its message came."""

    ts: int
    nonce: bytes
    meta: bytes

    def pack(self) -> bytes:
        return b"%b%b%b" % (self.ts.to_bytes(8, "big"), self.nonce, self.meta)

    @staticmethod
    def parse(raw: bytes) -> "NtfItem":
        return NtfItem(int.from_bytes(raw[:8], "big"), raw[8:32], raw[32:])


class TakenNtfs(NamedTuple):
    """Notifications for their owner, and how many had expired before them."""

    items: list[NtfItem]
    expired: int = 0


class SendResult(NamedTuple):
    """`deliver`: the owner is on this edge, which has the body in hand. Other edges hear through their inbox."""

    status: Status
    deliver: Owner | None = None
    ntf_deliver: Owner | None = None
    expired: int = 0
    ntfs_lost: int = 0


class AckResult(NamedTuple):
    """`acked`: flags of the message that was removed (None when it had expired). `next` is in flight now."""

    status: Status
    acked: int | None = None
    next: Entry | None = None
    expired: int = 0


class SubResult(NamedTuple):
    """`head` is in flight to the subscriber now."""

    status: Status
    head: Entry | None = None
    assoc: Assoc = Assoc.NONE
    expired: int = 0


class NsubResult(NamedTuple):
    status: Status
    pending: bool = False
    assoc: Assoc = Assoc.NONE


class DeleteResult(NamedTuple):
    status: Status
    messages: int = 0
    notifications: int = 0


class QueueInfo(NamedTuple):
    """QUE: the number of messages (a quota marker counts) and the first one."""

    size: int
    head: Entry | None


@dataclass(frozen=True, slots=True)
class Takeover:
    """`ready`: queues that have messages (notifications) waiting. An EndsEvent follows, once, for the one who lost."""

    epoch: int
    count: int
    ids_hash: bytes
    ready: int


class Page(NamedTuple):
    """`cursor` is None after the last page. `fenced`: another connection owns the service, stop."""

    cursor: int | None
    entries: "list[tuple[bytes, Entry]]"
    fenced: bool = False


class NtfPage(NamedTuple):
    cursor: int | None
    ntf_ids: list[bytes]
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class ServiceTotals:
    count: int
    ids_hash: bytes
    ready: int = 0
    owner: str | None = None  # "edge:conn" of the connection that owns it
    epoch: int = 0
    since: int | None = None  # when that connection took it (Unix time)


class FoldProgress(NamedTuple):
    """Where a fold is: queues that were ready at SOKS, messages given so far, queues left."""

    ready: int
    delivered: int
    left: int
    edge: str
    since: float
    done: bool


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service as the operator sees it."""

    service_id: bytes
    role: ServiceRole
    created: int
    fingerprints: dict[bytes, int | None]  # → end of its overlap (Unix time), None for one that is in use
    totals: ServiceTotals
    fold: FoldProgress | None = None
    drift: dict[str, int] = field(default_factory=dict)  # how often SUBS came with ok, more, fewer, diff


class Held(NamedTuple):
    """A subscription that a connection of this edge has; `msg_id` is in flight to it, or b""."""

    rcv_id: bytes
    conn: int
    gen: int
    msg_id: bytes


class HeldNtf(NamedTuple):
    rcv_id: bytes
    ntf_id: bytes
    conn: int
    gen: int


class Swept(NamedTuple):
    """What a slice of the sweep removed; cursor 0 ends the round."""

    cursor: int
    messages: int
    notifications: int
    queues: int


class ServiceError(Enum):
    ROLE_MISMATCH = "role"
    REFUSED = "refused"  # the certificate was rotated away, or the service forgotten


class MsgEvent(NamedTuple):
    """Send this message to conn; it is in flight already."""

    rcv_id: bytes
    entry: Entry
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class EndEvent:
    """END for a queue (or notifier): another connection has it now."""

    entity_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class MovedEvent:
    """END for one queue of a service: it was taken out of the service."""

    entity_id: bytes
    service_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class DeldEvent:
    """DELD; `service_id` when it was a queue of a service that conn owns."""

    entity_id: bytes
    conn: int
    gen: int
    service_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class EndsEvent:
    """ENDS: another connection has the service now. Comes once for each epoch that lost."""

    service_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class NtfEvent:
    """Notifications wait: take them."""

    ntf_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class BlockedEvent:
    rcv_id: bytes
    conn: int
    gen: int
    info: BlockingInfo


Event = MsgEvent | EndEvent | MovedEvent | DeldEvent | EndsEvent | NtfEvent | BlockedEvent
