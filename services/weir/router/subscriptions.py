"""What one connection is subscribed to: per queue the message it has been given, per service what it was told."""

from __future__ import annotations

from collections.abc import Iterable

from weir.wire import ids_hash


class Sub:
    """A queue on one connection: subscribed (SUB, NEW, a service's delivery), or read with GET (`prohibit`).

    `gen` fences the subscription: events for an earlier one are dropped. `msg_id` is the message it was given and
    has not acknowledged, `sent` says when it left for the client (0: it still waits for room).
    """

    __slots__ = ("gen", "last", "msg_id", "prohibit", "sent", "trace")

    def __init__(self, gen: int, prohibit: bool = False) -> None:
        self.gen = gen
        self.prohibit = prohibit
        self.msg_id: bytes | None = None
        self.last: bytes | None = None
        self.sent = 0
        self.trace = b""  # of the message, when its SEND was traced

    def give(self, msg_id: bytes) -> bool:
        """Take a message on; False when this is the one it already had (the same event again)."""
        if msg_id == self.msg_id or msg_id == self.last:
            return False
        self.msg_id = msg_id
        self.sent = 0
        return True

    def clear(self) -> None:
        if self.msg_id is not None:
            self.last = self.msg_id
        self.msg_id = None
        self.sent = 0
        self.trace = b""


_PENDING = ((60, "pending_60"), (300, "pending_300"), (1200, "pending_1200"), (3600, "pending_3600"))
PENDING_GAUGES = ("in_flight", "in_flight_clients", *(name for _, name in _PENDING), "pending_more", "pending_max")


def count_subs(subs: Iterable[Sub], now: int, gauges: dict[str, int]) -> int:
    """One client's subscriptions, of which GET is none; its messages that wait for their ACK, by how long they do."""
    count = 0
    times = []
    for sub in subs:
        count += not sub.prohibit
        if sub.sent:
            times.append(now - sub.sent)
    if times:
        gauges["in_flight"] += len(times)
        gauges["in_flight_clients"] += 1
        gauges["pending_max"] = max(gauges["pending_max"], *times)
        for waited in times:
            gauges[next((name for limit, name in _PENDING if waited < limit), "pending_more")] += 1
    return count


class ServiceTotals:
    """The queues a service's connection has been told of, as (count, hash): what ENDS carries."""

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
        """One queue fewer; nothing is left below one (the count cannot go under)."""
        if self.count > 1:
            self.count -= 1
            self.ids_hash = ids_hash.add(self.ids_hash, ids_hash.of_id(queue_id))
        else:
            self.set(0, ids_hash.EMPTY)

    def take(self) -> tuple[int, bytes]:
        """The totals, which are over with this."""
        taken = self.count, self.ids_hash
        self.set(0, ids_hash.EMPTY)
        return taken
