"""Judges a history (history.py): a pure function with a model of its own, which knows nothing of the router's code.

A command without an answer may have been executed, may still be executed later, or never: the model accepts all three.
What the model demands:

- A message whose SEND was answered OK is delivered, unless its queue was deleted.
- No message is delivered to a subscription or a GET that began after the message's ACK was answered OK, nor again on
  the connection that acknowledged it.
- A message comes once to a subscription, unless its ACK was refused there.
- A message is not delivered before one whose SEND was answered OK before its own SEND began.
- A message is stored once, and never when its SEND was refused.
- A connection gets no message of a queue after END or DELD, until it subscribes again. END and ENDS come to subscribers
  only, and only if another connection may have subscribed meanwhile.
- A queue exists from a NEW that was answered until a DEL, and never after a DEL that was answered OK. Commands are
  refused for no other reason.
- A subscriber that stays connected hears DELD if the queue is gone, and only then.
- In the end at most one connection believes that it is subscribed to a queue or a service. It has got every message,
  and ALLS in the case of a service, and a probe message reaches it.
- In the end each service's count and hash are those of its queues, and keys, notifiers and links are as last written.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.faults.history import Line
from tests.faults.model import Connection, Key, Queue, Register, Sent, Subscription

_SUBSCRIBES = {"SUB", "SUBS"}
_MOST_UNKNOWN = 14  # queues of one service whose association is unknown; every subset of them is tried


def check(history: Iterable[Line]) -> list[str]:
    """Return what must not have happened, one sentence each."""
    model = _Model()
    for place, line in enumerate(history):
        model.take(place, line)
    model.finish()
    return model.problems


class _Model:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self._queues: dict[int, Queue] = {}
        self._connections: dict[int, Connection] = {}
        self._calls: dict[int, tuple[int, Line]] = {}
        self._asking: dict[int, Subscription] = {}  # ACK's op → the subscription that its answer may bring a message
        # Who subscribed to what: op → connection, and where that was answered for certain.
        self._takes: defaultdict[Key, dict[int, tuple[int, int | None]]] = defaultdict(dict)
        self._totals: dict[str, tuple[int, str]] = {}
        self._settled: list[tuple[Connection, dict[Key, Subscription]]] = []  # living connections, at the end
        self._drained = False
        self._at = 0.0

    def take(self, place: int, line: Line) -> None:
        self._at = line.get("at", 0.0)
        handler = getattr(self, f"_on_{line['is']}", None)
        if handler is not None:
            handler(place, line)

    def _found(self, text: str) -> None:
        self.problems.append(f"{text} ({self._at:.3f} s)")

    # Lines

    def _on_queue(self, _place: int, line: Line) -> None:
        """A queue that exists at first, or the answer to a NEW, which subscribes the connection as SUB does."""
        queue = self._queues[line["queue"]] = Queue(line["queue"], bytes.fromhex(line["id"]))
        queue.registers["service"] = Register(line["service"])
        queue.registers["key"] = Register(line.get("key", ""))
        if "op" not in line:
            return
        queue.made = True
        called, call = self._calls[line["op"]]
        conn = self._connections[call["conn"]]
        if not conn.service:
            conn.subscriptions[queue.number] = Subscription(called, called, believes=True)

    def _on_open(self, _place: int, line: Line) -> None:
        self._connections[line["conn"]] = Connection(line["conn"], line["service"])

    def _on_close(self, _place: int, line: Line) -> None:
        connection = self._connections[line["conn"]]
        connection.is_open = False
        connection.subscriptions = {}

    def _on_alive(self, _place: int, line: Line) -> None:
        self._connections[line["conn"]].alive = True

    def _on_rested(self, _place: int, _line: Line) -> None:
        self._settle()
        for queue in self._queues.values():
            for conn, _ in self._receivers(queue):
                stuck = [sent.value for sent in queue.sent.values() if sent.result == "ok" and sent.first is None]
                if stuck and queue.exists is not False:
                    self._found(f"queue {queue.number}: its subscriber {conn.number} did not get messages {stuck}")

    def _on_settled(self, _place: int, _line: Line) -> None:
        self._settle()

    def _settle(self) -> None:
        alive = [conn for conn in self._connections.values() if conn.alive and conn.is_open]
        self._settled = [(conn, copy.deepcopy(conn.subscriptions)) for conn in alive]

    def _on_drained(self, _place: int, _line: Line) -> None:
        self._drained = True

    def _on_exists(self, _place: int, line: Line) -> None:
        self._queues[line["queue"]].exists = line["exists"]

    def _on_totals(self, _place: int, line: Line) -> None:
        self._totals[line["service"]] = line["count"], line["hash"]

    def _on_holds(self, _place: int, line: Line) -> None:
        possible = self._queues[line["queue"]].register(line["what"]).possible
        if line["value"] not in possible:
            allowed = sorted(map(str, possible))
            self._found(f"queue {line['queue']}: its {line['what']} is {line['value']!r}, not one of {allowed}")

    def _on_call(self, place: int, line: Line) -> None:
        self._calls[line["op"]] = place, line
        name, conn = line["name"], self._connections[line["conn"]]
        queue = self._queues.get(line.get("queue", -1))
        if _subscribes(name, conn):
            key = conn.service or line["queue"]
            subscription = conn.subscriptions.setdefault(key, Subscription(place, place))
            subscription.call(line["op"], place)
        for key in _taken(line, conn):
            self._takes[key][line["op"]] = conn.number, None
        if name == "SEND" and queue is not None:
            queue.sent[line["value"]] = Sent(line["value"], place, bool(line.get("probe")))
        elif name == "DEL" and queue is not None:
            queue.deletes[line["op"]] = "unknown"
            queue.deleted_by.add(conn.number)
        elif name == "ACK" and queue is not None and (asking := _subscription(queue, conn)) is not None:
            self._asking[line["op"]] = asking
        if queue is not None and (written := _written(line, conn)) is not None:
            queue.register(written[0]).unknown.add(written[1])

    def _on_done(self, place: int, line: Line) -> None:
        called, call = self._calls[line["op"]]
        name, result, conn = call["name"], line["result"], self._connections[call["conn"]]
        queue = self._queues.get(call.get("queue", -1))
        if _subscribes(name, conn) and result == "ok" and conn.is_open:
            subscription = conn.subscriptions.setdefault(conn.service or call["queue"], Subscription(called, called))
            subscription.open_calls.pop(line["op"], None)
            subscription.asked = place
            # SUB and NEW of a service bring one queue: only SUBS lets the service believe that it has them all.
            subscription.believes |= bool(conn.service) == (name == "SUBS")
        if result != "unknown":
            for key in _taken(call, conn):
                self._takes[key][line["op"]] = conn.number, place
        if name == "NEW" and result == "refused":
            self._found(f"NEW of connection {conn.number} was refused")
        if queue is None:
            return
        if name == "SEND":
            sent = queue.sent[call["value"]]
            sent.result, sent.done = result, place
            if result == "refused" and sent.first is not None:
                self._found(f"queue {queue.number}: message {sent.value} was delivered, and its SEND was refused")
        elif name == "ACK" and result == "ok":
            queue.acked.setdefault(call["message"], place)
            conn.acked.add(call["message"])
        elif name == "ACK" and result == "refused" and (asked := self._asking.get(line["op"])) is not None:
            asked.given.pop(call["message"], None)  # the message was not the subscription's any more; it may come again
        elif name == "DEL":
            queue.deletes[call["op"]] = result
        if result == "refused" and line.get("error") == "AUTH" and not call.get("may_fail"):
            self._on_gone(queue, call, conn)
        if (written := _written(call, conn)) is not None:
            queue.register(written[0]).settle(written[1], result)

    def _on_gone(self, queue: Queue, call: Line, conn: Connection) -> None:
        """A command was refused because there is no such queue. So a subscriber hears of a deletion, as by DELD."""
        queue.gone = True
        if not queue.may_be_deleted:
            self._found(f"queue {queue.number}: {call['name']} was refused, and nobody deleted the queue")
        if call["name"] == "SUB" and (subscription := conn.subscriptions.get(queue.number)) is not None:
            subscription.open_calls.pop(call["op"], None)
            _end(conn, queue.number)

    def _on_event(self, place: int, line: Line) -> None:
        name, conn = line["name"], self._connections[line["conn"]]
        if name == "MSG":
            self._on_message(place, line, conn)
            return
        if name in ("END", "ENDS"):
            self._check_end(line, conn)
        if name == "ALLS":
            if (subscription := conn.subscriptions.get(conn.service)) is not None:
                subscription.complete = True
            return
        _end(conn, conn.service if name == "ENDS" else line["queue"])
        if name == "DELD":
            queue = self._queues[line["queue"]]
            conn.subscriptions[queue.number] = Subscription(place, place, deleted=True)
            if not queue.may_be_deleted:
                self._found(f"queue {queue.number}: connection {conn.number} heard DELD, and nobody deleted the queue")

    def _check_end(self, line: Line, conn: Connection) -> None:
        name = line["name"]
        if name == "END" and conn.service:
            return  # a service is not subscribed to one queue
        key = conn.service or line["queue"]
        subscription = conn.subscriptions.get(key)
        what = f"service {key}" if name == "ENDS" else f"queue {key}"
        if subscription is None or subscription.deleted:
            self._found(f"{what}: connection {conn.number} heard {name}, and is not subscribed")
            return
        takes = [*self._takes[key].values()]
        if name == "END" and self._queues[line["queue"]].made:
            takes += self._takes["NEW"].values()  # a NEW that is executed again subscribes to the queue
        others = (settled for other, settled in takes if other != conn.number)
        if not any(settled is None or settled > subscription.began for settled in others):
            self._found(f"{what}: connection {conn.number} heard {name}, and nobody else subscribed")

    # Messages

    def _on_message(self, place: int, line: Line, conn: Connection) -> None:
        queue, message, value = self._queues[line["queue"]], line["message"], line["value"]
        where = f"queue {queue.number}: message {value}"
        to = f"to connection {conn.number}"
        sent = queue.sent.get(value)
        if sent is None:
            self._found(f"{where} came {to}, and nobody sent it")
            return
        if sent.result == "refused":
            self._found(f"{where} was delivered, and its SEND was refused")
        if sent.message not in ("", message) or queue.values.setdefault(message, value) != value:
            self._found(f"{where} was stored twice")
        sent.message = message
        op = line.get("op")
        subscription = self._asking.get(op) or _subscription(queue, conn)
        began = subscription.began if subscription is not None else None
        if op is not None and self._calls[op][1]["name"] == "GET":
            began, subscription = self._calls[op][0], None
        if began is None:
            self._found(f"{where} came {to}, which is not subscribed")
        elif message in conn.acked:
            self._found(f"{where} came again {to} after its ACK was answered there")
        elif began > queue.acked.get(message, place):
            self._found(f"{where} came {to}, which subscribed after its ACK was answered")
        elif subscription is not None and subscription.gave_before(message):
            self._found(f"{where} came twice to one subscription {to}")
        if subscription is not None:
            subscription.given.setdefault(message, []).append(place)
        if sent.first is None:
            sent.first = place
            for other in queue.sent.values():
                if other.confirmed_before(sent) and other.first is None:
                    self._found(f"{where} came before message {other.value}, which was sent earlier")

    # The end

    def finish(self) -> None:
        for queue in self._queues.values():
            self._check_deletion(queue)
            self._check_delivered(queue)
            self._check_believers(queue.number, f"queue {queue.number}")
            self._check_probes(queue)
        for service in sorted({conn.service for conn in self._connections.values() if conn.service}):
            self._check_believers(service, f"service {service}")
            self._check_complete(service)
            self._check_totals(service)

    def _check_deletion(self, queue: Queue) -> None:
        if queue.exists and "ok" in queue.deletes.values():
            self._found(f"queue {queue.number} exists after a DEL that was answered OK")
        if queue.exists and queue.gone:
            self._found(f"queue {queue.number} exists after a command that was refused")
        if queue.exists is False and not queue.may_be_deleted:
            self._found(f"queue {queue.number} is gone, and nobody deleted it")
        for conn, subscriptions in self._settled:
            subscription = subscriptions.get(queue.number)
            if subscription is None:
                continue
            if subscription.deleted and queue.exists:
                self._found(f"queue {queue.number}: connection {conn.number} heard DELD, and the queue exists")
            if subscription.believes and queue.exists is False and conn.number not in queue.deleted_by:
                self._found(f"queue {queue.number} is gone, and its subscriber {conn.number} did not hear DELD")

    def _check_delivered(self, queue: Queue) -> None:
        for sent in queue.sent.values():
            if self._drained and queue.exists is not False and sent.result == "ok" and sent.first is None:
                self._found(f"queue {queue.number}: message {sent.value} is lost")

    def _believers(self, key: Key) -> list[tuple[Connection, Subscription]]:
        return [(conn, subs[key]) for conn, subs in self._settled if key in subs and subs[key].believes]

    def _check_believers(self, key: Key, name: str) -> None:
        numbers = [conn.number for conn, _ in self._believers(key)]
        if len(numbers) > 1:
            self._found(f"{name}: connections {numbers} believe that they are subscribed")

    def _check_complete(self, service: str) -> None:
        for conn, subscription in self._believers(service):
            if not subscription.complete:
                self._found(f"service {service}: its connection {conn.number} did not get ALLS")

    def _receivers(self, queue: Queue) -> list[tuple[Connection, Subscription]]:
        """Who believes that it gets this queue's messages."""
        service = queue.register("service")
        return self._believers(service.confirmed if service.confirmed and not service.unknown else queue.number)

    def _check_probes(self, queue: Queue) -> None:
        for sent in queue.sent.values():
            for conn, subscription in self._receivers(queue):
                if sent.probe and sent.result == "ok" and queue.exists and sent.message not in subscription.given:
                    self._found(f"queue {queue.number}: its subscriber {conn.number} did not get the probe")

    def _check_totals(self, service: str) -> None:
        if service not in self._totals:
            return
        certain: list[Queue] = []
        unknown: list[Queue] = []
        for queue in self._queues.values():
            possible = queue.register("service").possible
            if queue.exists is not False and service in possible:
                (certain if possible == {service} else unknown).append(queue)
        found = self._totals[service]
        if not any(_totals([*certain, *some]) == found for some in _subsets(unknown[:_MOST_UNKNOWN])):
            self._found(
                f"service {service}: SUBS answers {found}, its queues make {_totals(certain)} "
                f"({len(unknown)} more may belong to it)"
            )


def _subscribes(name: str, conn: Connection) -> bool:
    """NEW subscribes, too: a service takes over with it, as with SUB. A queue has no number before NEW is answered."""
    return name in _SUBSCRIBES or (name == "NEW" and bool(conn.service))


def _taken(call: Line, conn: Connection) -> set[Key]:
    """What a command takes from others if it is executed."""
    name = call["name"]
    if name == "NEW":
        return {conn.service or "NEW"}
    if name not in _SUBSCRIBES:
        return set()
    return {key for key in (call.get("queue"), conn.service) if key not in (None, "")}


def _subscription(queue: Queue, conn: Connection) -> Subscription | None:
    """The subscription that brings a connection the messages of a queue."""
    own = conn.subscriptions.get(queue.number)
    if own is not None and own.deleted:
        return None
    return conn.subscriptions.get(conn.service) if conn.service else own


def _end(conn: Connection, key: Key) -> None:
    """END, ENDS or DELD: the connection believes no longer. A SUB that is not answered may still bring messages."""
    ended = conn.subscriptions.pop(key, None)
    if ended is not None and ended.open_calls:
        began = min(ended.open_calls.values())
        conn.subscriptions[key] = Subscription(began, ended.asked, ended.open_calls, overlapping=len(ended.open_calls))


def _written(call: Line, conn: Connection) -> tuple[str, Any] | None:
    """What the command writes: a register's name and the value."""
    if call["name"] == "SUB" and conn.service:
        return "service", conn.service
    return (call["writes"], call["value"]) if "writes" in call else None


def _subsets(queues: list[Queue]) -> Iterator[tuple[Queue, ...]]:
    return itertools.chain.from_iterable(itertools.combinations(queues, n) for n in range(len(queues) + 1))


def _totals(queues: Iterable[Queue]) -> tuple[int, str]:
    """The number of queues and the XOR of the MD5 hashes of their ids."""
    count = total = 0
    for queue in queues:
        count += 1
        total ^= int.from_bytes(hashlib.md5(queue.id, usedforsecurity=False).digest(), "big")
    return count, total.to_bytes(16, "big").hex()
