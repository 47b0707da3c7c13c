"""The rules of queues, owners and services in a few lines of Python, to hold the scripts against.

Nothing here knows of Redis: one thing happens at a time, and everybody knows everything.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import md5
from typing import NamedTuple

from weir.router.store.records import (
    AckResult,
    Assoc,
    DeldEvent,
    EndEvent,
    EndsEvent,
    Entry,
    Event,
    MovedEvent,
    MsgEvent,
    NtfEvent,
    Owner,
    SendResult,
    Status,
    SubResult,
)

Told = dict[str, list[Event]]


class Token(NamedTuple):
    """The owner of a queue or a service: a connection of an edge, for one subscription."""

    edge: str
    conn: int
    gen: int

    def is_of(self, edge: str, conn: int | None) -> bool:
        return (self.edge, self.conn) == (edge, conn)

    @property
    def owner(self) -> Owner:
        return Owner(self.conn, self.gen)


@dataclass
class Queue:
    rcv_id: bytes
    ntf_id: bytes
    messages: list[Entry] = field(default_factory=list)
    owner: Token | None = None
    service: bytes | None = None
    in_flight: tuple[bytes, Token] | None = None
    over: bool = False
    ntf_owner: Token | None = None
    ntf_waiting: int = 0
    given: dict[Token, list[bytes]] = field(default_factory=dict)


@dataclass
class Service:
    epoch: int = 0
    owner: Token | None = None


class Model:
    def __init__(self, quota: int) -> None:
        self.quota = quota
        self.queues: dict[bytes, Queue] = {}
        self.services: dict[bytes, Service] = {}
        self.live: set[str] = set()
        self.told: Told = {}

    # Common parts of the rules

    def owner_of(self, q: Queue) -> Token | None:
        return self.services[q.service].owner if q.service else q.owner

    def tell(self, to: Token | None, event_of: "type[Event]", *what: object, by: tuple[str, int | None]) -> None:
        """Tells a live owner, never the connection that caused it."""
        if to is not None and to.edge in self.live and not to.is_of(*by):
            first, *rest = what
            self.told.setdefault(to.edge, []).append(event_of(first, *rest, to.conn, to.gen))  # type: ignore[call-arg,arg-type]

    def give(self, q: Queue, to: Token, *, again: bool = False) -> None:
        """Puts the first message in flight; no message goes twice to the same subscription, nor out of order."""
        msg_id = q.messages[0].msg_id
        given = q.given.setdefault(to, [])
        assert again or msg_id not in given
        given.append(msg_id)
        q.in_flight = (msg_id, to)

    @staticmethod
    def expire(q: Queue, before: int) -> int:
        fresh = [n for n, entry in enumerate(q.messages) if entry.ts >= before]
        expired = fresh[0] if fresh else len(q.messages)
        del q.messages[:expired]
        return expired

    def totals(self, service: bytes) -> tuple[int, bytes, int]:
        mine = [q for q in self.queues.values() if q.service == service]
        total = 0
        for q in mine:
            total ^= int.from_bytes(md5(q.rcv_id).digest(), "big")
        return len(mine), total.to_bytes(16, "big"), sum(bool(q.messages) for q in mine)

    def waiting(self, service: bytes) -> Iterator[Queue]:
        return (q for q in self.queues.values() if q.service == service and q.messages)

    # Commands

    def send(self, q: Queue, edge: str, entry: Entry, before: int, *, ntf: bool) -> SendResult:
        expired = 0
        if q.over:
            expired = self.expire(q, before)
            if q.messages:
                return SendResult(Status.QUOTA)
            q.over = False
        q.messages.append(entry)
        expired += self.expire(q, before)
        if len(q.messages) > self.quota:
            q.messages[-1] = Entry(entry.msg_id, entry.ts, 2)
            q.over = True
            return SendResult(Status.QUOTA)
        deliver = None
        to = self.owner_of(q)
        if to is not None and to.edge in self.live and (q.in_flight is None or q.in_flight[1] != to):
            self.give(q, to)
            if q.messages[0] is entry and to.edge == edge:
                deliver = to.owner
            else:
                self.told.setdefault(to.edge, []).append(MsgEvent(q.rcv_id, q.messages[0], *to.owner))
        ntf_deliver = None
        if ntf:
            q.ntf_waiting += 1
            if q.ntf_waiting == 1 and q.ntf_owner is not None:
                if q.ntf_owner.edge == edge:
                    ntf_deliver = q.ntf_owner.owner
                else:
                    self.tell(q.ntf_owner, NtfEvent, q.ntf_id, by=("", None))
        return SendResult(Status.OK, deliver, ntf_deliver, expired)

    def ack(self, q: Queue, who: Token, msg_id: bytes, before: int) -> AckResult:
        if q.in_flight is None or q.in_flight[1] != who or msg_id not in (b"", q.in_flight[0]):
            return AckResult(Status.NO_MSG)
        if q.service and self.owner_of(q) != who:
            return AckResult(Status.NO_MSG)
        flags = None
        if q.messages and q.messages[0].msg_id == q.in_flight[0]:
            flags = q.messages.pop(0).flags
        expired = self.expire(q, before)
        q.in_flight = None
        if q.messages:
            self.give(q, who)
        return AckResult(Status.OK, flags, q.messages[0] if q.messages else None, expired)

    def ack_get(self, q: Queue, msg_id: bytes) -> AckResult:
        if q.messages and q.messages[0].msg_id == msg_id:
            return AckResult(Status.OK, q.messages.pop(0).flags)
        return AckResult(Status.OK)

    def sub(self, q: Queue, who: Token, service: bytes | None, before: int) -> SubResult:
        if service is not None and self.services[service].owner != who:
            return SubResult(Status.FENCED)
        by = (who.edge, who.conn)
        expired = self.expire(q, before)
        assoc = Assoc.NONE
        if q.service == service:
            assoc = Assoc.DUPLICATE if service else Assoc.NONE
        elif q.service is None:
            assoc = Assoc.NEW
        else:
            assoc = Assoc.UPDATED if service else Assoc.REMOVED
            self.tell(self.services[q.service].owner, MovedEvent, q.rcv_id, q.service, by=by)
        if q.owner != who:
            self.tell(q.owner, EndEvent, q.rcv_id, by=by)
        q.service = service
        q.owner = None if service else who
        q.in_flight = None
        if q.messages:
            self.give(q, who, again=True)
        return SubResult(Status.OK, q.messages[0] if q.messages else None, assoc, expired)

    def nsub(self, q: Queue, who: Token) -> bool:
        if q.ntf_owner != who:
            self.tell(q.ntf_owner, EndEvent, q.ntf_id, by=(who.edge, who.conn))
        q.ntf_owner = who
        return q.ntf_waiting > 0

    def take_ntfs(self, q: Queue, who: Token) -> int:
        if q.ntf_owner != who:
            return 0
        taken, q.ntf_waiting = q.ntf_waiting, 0
        return taken

    def disconnect(self, edge: str, conn: int) -> None:
        for q in self.queues.values():
            if q.owner is not None and q.owner.is_of(edge, conn):
                q.owner = None
            if q.ntf_owner is not None and q.ntf_owner.is_of(edge, conn):
                q.ntf_owner = None
        for service in self.services.values():
            if service.owner is not None and service.owner.is_of(edge, conn):
                service.owner = None

    def takeover(self, service_id: bytes, edge: str, conn: int) -> Token:
        service = self.services[service_id]
        service.epoch += 1
        self.tell(service.owner, EndsEvent, service_id, by=(edge, conn))
        service.owner = Token(edge, conn, service.epoch)
        return service.owner

    def fold(self, service_id: bytes, who: Token, before: int) -> dict[bytes, Entry] | None:
        if self.services[service_id].owner != who:
            return None
        folded = {}
        for q in self.waiting(service_id):
            self.expire(q, before)
            if q.messages and (q.in_flight is None or q.in_flight[1] != who):
                self.give(q, who)
                folded[q.rcv_id] = q.messages[0]
        return folded

    def delete(self, q: Queue, edge: str, conn: int) -> tuple[int, int]:
        by = (edge, conn)
        if q.service:
            to = self.services[q.service].owner
            if to is not None and to.edge in self.live and not to.is_of(*by):
                self.told.setdefault(to.edge, []).append(DeldEvent(q.rcv_id, to.conn, to.gen, q.service))
        else:
            self.tell(q.owner, DeldEvent, q.rcv_id, by=by)
        self.tell(q.ntf_owner, DeldEvent, q.ntf_id, by=by)
        del self.queues[q.rcv_id]
        return len(q.messages), q.ntf_waiting
