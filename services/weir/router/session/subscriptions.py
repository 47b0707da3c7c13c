"""The subscriptions of a session: its queues and notifiers, and the ownership of its service.

A queue's owner token ends in a generation, so that an event for an earlier subscription can be told from one for the
present subscription. A session with a service owns the service under an *epoch*, which is the generation of all queues
of the service.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole

if TYPE_CHECKING:
    from weir.router.store.records import Event
    from weir.transport.smp_handshake import PeerService


class Sub:
    """One queue of a session: subscribed (SUB, NEW, a service's delivery), or read with GET (`prohibit`).

    `gen` fences the subscription: events for an earlier generation are dropped. `msg_id` is the message that the
    client was given and has not acknowledged. `sent` is the time when the message left for the client, or 0 while the
    message waits for room. `answered`: the client was told that it is subscribed.
    """

    __slots__ = ("answered", "gen", "last", "msg_id", "prohibit", "sent", "trace")

    def __init__(self, gen: int, prohibit: bool = False, *, answered: bool = False) -> None:
        self.gen = gen
        self.prohibit = prohibit
        self.answered = answered
        self.msg_id: bytes | None = None
        self.last: bytes | None = None
        self.sent = 0.0
        self.trace = b""  # context of the message's SEND, when it was traced

    def give(self, msg_id: bytes) -> bool:
        """Take a message. Return False if it is the present or the previous message: the same event came twice."""
        if msg_id == self.msg_id or msg_id == self.last:
            return False
        self.msg_id = msg_id
        self.sent = 0.0
        return True

    def clear(self) -> None:
        """The message is acknowledged."""
        if self.msg_id is not None:
            self.last = self.msg_id
        self.msg_id = None
        self.sent = 0.0
        self.trace = b""


_PENDING = ((60, "pending_60"), (300, "pending_300"), (1200, "pending_1200"), (3600, "pending_3600"))
PENDING_GAUGES = ("in_flight", "in_flight_clients", *(name for _, name in _PENDING), "pending_more", "pending_max")


def count_in_flight(waited: Collection[int], gauges: dict[str, int]) -> None:
    """Count one client's messages in flight by the seconds that they have waited for their ACK."""
    gauges["in_flight"] += len(waited)
    gauges["in_flight_clients"] += 1
    gauges["pending_max"] = max(gauges["pending_max"], *waited)
    for seconds in waited:
        gauges[next((name for limit, name in _PENDING if seconds < limit), "pending_more")] += 1


class QueueTotals:
    """The number of a service's queues and their idsHash, as the session reported them to its client: for ENDS."""

    __slots__ = ("count", "ids_hash")

    def __init__(self) -> None:
        self.count = 0
        self.ids_hash = ids_hash.EMPTY

    def set(self, count: int, hash_: bytes) -> None:
        self.count, self.ids_hash = count, hash_

    def add(self, queue_id: bytes) -> None:
        self.count += 1
        self.ids_hash = ids_hash.add(self.ids_hash, ids_hash.of_id(queue_id))

    def subtract(self, queue_id: bytes) -> None:
        """Subtract one queue. The count stops at zero."""
        self.set(*ids_hash.subtract_subs((self.count, self.ids_hash), (1, ids_hash.of_id(queue_id))))

    def take(self) -> tuple[int, bytes]:
        """Return the totals and reset them to zero."""
        taken = self.count, self.ids_hash
        self.set(0, ids_hash.EMPTY)
        return taken


class Subscriptions:
    """The queues, notifiers and the service of one session."""

    __slots__ = (
        "epoch",
        "held_events",
        "notifiers",
        "notifiers_asked",
        "notifiers_ready",
        "queues",
        "read_queues",
        "service",
        "service_subscribed",
        "takeover",
        "totals",
        "unacknowledged",
    )

    def __init__(self, service: PeerService | None) -> None:
        self.service = service
        self.queues: dict[bytes, Sub] = {}
        self.read_queues: set[bytes] = set()  # queues that were read with GET
        # Queues whose message has left for the client. Those acknowledged since are dropped when messages are counted.
        self.unacknowledged: dict[bytes, Sub] = {}
        self.notifiers: dict[bytes, tuple[int, bytes]] = {}  # notifier id → generation, the queue's recipient id
        self.notifiers_asked: set[bytes] = set()  # notifier ids whose first NSUB has not been answered
        self.notifiers_ready: set[bytes] = set()  # notifier ids whose notifications can be fetched
        self.epoch: int | None = None  # None: the session does not own its service
        self.takeover: asyncio.Event | None = None  # set when the takeover in progress has ended
        self.held_events: list[Event] | None = None  # events that came before the takeover's answer
        self.service_subscribed = False  # by SUBS or NSUBS
        self.totals = QueueTotals()

    def awaits(self, rcv_id: bytes, sub: Sub, msg_id: bytes) -> bool:
        """Whether this message is still the one in flight to this subscription: neither displaced nor replaced."""
        return self.queues.get(rcv_id) is sub and sub.msg_id == msg_id

    def answered(self, entity_id: bytes) -> bool:
        """Whether the client was told that it is subscribed to this queue, notifier or service, and still is."""
        if self.service is not None and entity_id == self.service.service_id:
            return self.service_subscribed
        sub = self.queues.get(entity_id)
        if sub is not None:
            return sub.answered
        return entity_id in self.notifiers and entity_id not in self.notifiers_asked

    def owns(self, entity_id: bytes, gen: int) -> bool:
        """Whether the session owns this queue or notifier under this generation."""
        return self.gen_of(entity_id) == gen

    def gen_of(self, entity_id: bytes) -> int | None:
        """Return the generation under which the session owns a queue or notifier. For a service it is the epoch."""
        sub = self.queues.get(entity_id)
        if self.service is None and sub is not None and not sub.prohibit:
            return sub.gen
        return self.notifier_gen(entity_id)

    def owned_sub(self, rcv_id: bytes, gen: int) -> Sub | None:
        """Return the subscription that a message of this generation is for. A service's subscription is made here."""
        sub = self.queues.get(rcv_id)
        if self.service is None:
            return sub if sub is not None and sub.gen == gen else None
        if self.epoch != gen:
            return None
        if sub is None:
            sub = self.queues[rcv_id] = Sub(gen)
        return sub

    def notifier_gen(self, ntf_id: bytes) -> int | None:
        """Return the generation under which the session owns a notifier."""
        if self.service is not None:
            return self.epoch
        sub = self.notifiers.get(ntf_id)
        return None if sub is None else sub[0]

    def remove(self, entity_id: bytes) -> None:
        """The session owns this queue or notifier no longer."""
        self.queues.pop(entity_id, None)
        self.notifiers.pop(entity_id, None)
        self.notifiers_asked.discard(entity_id)
        self.notifiers_ready.discard(entity_id)
        if self.service is not None:
            self.totals.subtract(entity_id)

    @asynccontextmanager
    async def taking_over(
        self, loop: asyncio.AbstractEventLoop, on_event: Callable[[Event], None]
    ) -> AsyncIterator[None]:
        """Hold back events while the service is taken over, and replay them behind the answer to the command.

        Redis knows the new owner before this edge knows its epoch, so events for that epoch may come first.
        """
        self.takeover = ended = asyncio.Event()
        self.held_events = self.held_events or []
        try:
            yield
        finally:
            self.takeover = None
            ended.set()
            loop.call_soon(self._replay, on_event)

    def _replay(self, on_event: Callable[[Event], None]) -> None:
        if self.takeover is not None:
            return  # the takeover has failed, and another has begun
        events, self.held_events = self.held_events, None
        for event in events or ():
            on_event(event)

    def lose_service(self) -> None:
        """The session owns its service no longer, and none of the service's queues."""
        self.epoch = None
        self.service_subscribed = False
        for rcv_id in [rcv_id for rcv_id, sub in self.queues.items() if not sub.prohibit]:
            del self.queues[rcv_id]
        self.notifiers_ready.clear()

    @property
    def any(self) -> bool:
        """Whether the session waits for messages or notifications. GET is no subscription."""
        return (
            bool(self.notifiers)
            or self.service_subscribed
            or self.totals.count > 0
            or any(not sub.prohibit for sub in self.queues.values())
        )

    def count_into(self, gauges: dict[str, int], now: int) -> None:
        """Add this session's subscriptions to an edge's gauges. The cost does not grow with the subscriptions."""
        if self.unacknowledged:
            self._count_unacknowledged(gauges, now)
        if self.service is None:
            subs = len(self.queues)
            if self.read_queues:
                subs -= len(self.read_queues & self.queues.keys())
            if subs:
                gauges["subscriptions"] += subs
                gauges["subscribed_clients"] += 1
            if self.notifiers:
                gauges["ntf_subscriptions"] += len(self.notifiers)
                gauges["ntf_clients"] += 1
        elif self.epoch is not None:
            kind = "ntf_service" if self.service.role is ServiceRole.NOTIFIER else "service"
            gauges["ntf_services" if kind == "ntf_service" else "service_subscriptions"] += self.service_subscribed
            gauges[f"{kind}_queues"] += self.totals.count

    def _count_unacknowledged(self, gauges: dict[str, int], now: int) -> None:
        present = self.queues.get
        self.unacknowledged = kept = {
            rcv_id: sub
            for rcv_id, sub in self.unacknowledged.items()
            if sub.sent and sub.msg_id is not None and present(rcv_id) is sub
        }
        if kept:
            count_in_flight([now - int(sub.sent) for sub in kept.values()], gauges)
