"""The values that the store's calls take and return, and the events that it brings to an edge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple

from weir.wire.errors import BlockingInfo
from weir.wire.smp.commands import LinkData, QueueMode, ServiceRole


class Status(Enum):
    """The outcome of a script. STALE: the record has changed since it was read; fetch it, verify again and repeat."""

    OK = 0
    STALE = 1
    GONE = 2
    QUOTA = 3
    NO_MSG = 4
    CONFLICT = 5
    FENCED = 6  # another connection owns the service: take the service over first
    EXISTS = 7  # NEW: an earlier attempt has created this queue
    DUPLICATE = 8  # NEW, NKEY: another queue has the id


class Assoc(Enum):
    """How SUB or NSUB changed the queue's association with a service (the cases of the specification)."""

    NONE = 0
    NEW = 1
    DUPLICATE = 2
    UPDATED = 3
    REMOVED = 4


class EntityStatus(Enum):
    ACTIVE = "active"
    OFF = "off"


class Owner(NamedTuple):
    """A connection of this edge and the generation of its subscription (for services: the epoch)."""

    conn: int
    gen: int


@dataclass(slots=True)
class QueueRecord:
    """A queue's credentials. `rev` changes with every field except `day`. The store updates a record in place."""

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
    """A queue to create. `answer` is kept for `request`, a hash of the NEW: a repeated NEW with a client-chosen
    sender id gets the same answer."""

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
    """OK with the record, EXISTS with the answer to the first attempt, DUPLICATE, or FENCED."""

    status: Status
    record: QueueRecord | None = None
    answer: bytes | None = None


NOTIFICATION: Final = 1
QUOTA_MARKER: Final = 2
ENTRY_FORM: Final = b"%b%b%c%b"  # id, time, flags, trace context (lua/include/entry.lua)
_SECONDS: Final = 0xFFFFFFFF


class Entry(NamedTuple):
    """A stored message without its body. A quota marker has no stored body: the delivering edge builds it.

    `sent` is the time at which the SEND came, of a message that its recipient is given at once, else 0. The list of
    messages keeps whole seconds only.
    """

    msg_id: bytes
    ts: int
    flags: int
    trace: bytes = b""
    sent: float = 0.0

    @property
    def notification(self) -> bool:
        return bool(self.flags & NOTIFICATION)

    @property
    def quota(self) -> bool:
        return bool(self.flags & QUOTA_MARKER)

    def pack(self) -> bytes:
        return ENTRY_FORM % (self.msg_id, self.ts.to_bytes(8, "big"), self.flags, self.trace)

    @staticmethod
    def parse(raw: bytes) -> "Entry":
        ts, sent = int.from_bytes(raw[24:32], "big"), 0.0
        if ts > _SECONDS:
            microseconds, ts = ts >> 32, ts & _SECONDS
            sent = ts + microseconds / 1e6
        return Entry(raw[:24], ts, raw[32], raw[33:], sent)


class NtfItem(NamedTuple):
    """A waiting notification: the time of its message, and the content of NMSG."""

    ts: int
    nonce: bytes
    meta: bytes

    def pack(self) -> bytes:
        return b"%b%b%b" % (self.ts.to_bytes(8, "big"), self.nonce, self.meta)

    @staticmethod
    def parse(raw: bytes) -> "NtfItem":
        return NtfItem(int.from_bytes(raw[:8], "big"), raw[8:32], raw[32:])


class TakenNtfs(NamedTuple):
    """Notifications for their owner, and how many older ones had expired."""

    items: list[NtfItem]
    expired: int = 0


class SendResult(NamedTuple):
    """`deliver`: the owner, if this edge has it: this edge then delivers the body at once. Other edges get an event."""

    status: Status
    deliver: Owner | None = None
    ntf_deliver: Owner | None = None
    expired: int = 0
    ntfs_lost: int = 0


class AckResult(NamedTuple):
    """`acked`: flags of the removed message, None if it had expired. `next`: the message in flight now."""

    status: Status
    acked: int | None = None
    next: Entry | None = None
    expired: int = 0


class SubResult(NamedTuple):
    """`head`: the first message, which is now in flight to the subscriber."""

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
    """QUE: the number of messages, including a quota marker, and the first message."""

    size: int
    head: Entry | None


class Page(NamedTuple):
    """`cursor` is None after the last page. `fenced`: another connection owns the service; the fold must stop."""

    cursor: int | None
    entries: "list[tuple[bytes, Entry]]"
    fenced: bool = False


class NtfPage(NamedTuple):
    cursor: int | None
    ntf_ids: list[bytes]
    fenced: bool = False


@dataclass(frozen=True, slots=True)
class ServiceTotals:
    """`ready_in`: the number of queues with waiting messages (notifications), by partition. The others have none."""

    count: int
    ids_hash: bytes
    ready_in: Mapping[int, int] = field(default_factory=dict)
    owner: str | None = None  # "edge:conn" of the connection that owns it
    epoch: int = 0
    since: int | None = None  # when that connection took it (Unix time)

    @property
    def ready(self) -> int:
        return sum(self.ready_in.values())


class FoldProgress(NamedTuple):
    """Progress of a fold: queues that were ready at SOKS, messages delivered so far, queues left."""

    ready: int
    delivered: int
    left: int
    edge: str
    since: float
    done: bool


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """A service, as shown to the operator of the router."""

    service_id: bytes
    role: ServiceRole
    created: int
    fingerprints: dict[
        bytes, int | None
    ]  # end of a replaced certificate's overlap (Unix time), None for the current one
    totals: ServiceTotals
    fold: FoldProgress | None = None
    drift: dict[str, int] = field(
        default_factory=dict
    )  # number of SUBS by what the client expected: ok, more, fewer, diff
    label: str = ""  # that the operator of the router has given it


class Held(NamedTuple):
    """A subscription of a connection on this edge; `msg_id` is the message in flight to it, or b""."""

    rcv_id: bytes
    conn: int
    gen: int
    msg_id: bytes


class HeldNtf(NamedTuple):
    rcv_id: bytes
    ntf_id: bytes
    conn: int
    gen: int


class Regained(IntEnum):
    """The state of a subscription after Redis was unavailable (lua/include/regain.lua)."""

    UNCHANGED = 0
    DISPLACED = 1
    MISSING = 2
    NTFS_WAIT = 3


class Swept(NamedTuple):
    """The numbers of objects that one slice of a sweep removed. Cursor 0 ends the round."""

    cursor: int
    messages: int
    notifications: int
    queues: int
    damaged: int = 0  # queues that were left out because of what is in their keys


class ServiceError(Enum):
    ROLE_MISMATCH = "role"
    REFUSED = "refused"  # the certificate was replaced, or the service was forgotten


class MsgEvent(NamedTuple):
    """Send this message to the connection. It is already marked as in flight."""

    rcv_id: bytes
    entry: Entry
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class EndEvent:
    """END for a queue or notifier: another connection owns it now."""

    entity_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class MovedEvent:
    """END for one queue of a service: the queue has left the service."""

    entity_id: bytes
    service_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class DeldEvent:
    """DELD. `service_id` is set if the queue belonged to a service that the connection owns."""

    entity_id: bytes
    conn: int
    gen: int
    service_id: bytes | None = None


@dataclass(frozen=True, slots=True)
class EndsEvent:
    """ENDS: another connection owns the service now. Each epoch that lost gets one."""

    service_id: bytes
    conn: int
    gen: int


@dataclass(frozen=True, slots=True)
class NtfEvent:
    """Notifications wait: call `take_ntfs`."""

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
