"""What waits for one client: answers and events of this loop turn, and messages, as ids, until there is room.

Everything added in one turn of the loop is folded into as few blocks as it fits and handed to the transport at once.
Answers are always taken (a client whose answers pile up is not read from); messages only while the bytes that wait for
the client stay under the limit, a few fetches at a time. A message for which there is no room costs its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING

from weir.router.traces import trace_message
from weir.store.records import UNAVAILABLE, Entry, Unavailable
from weir.wire.transmission import encode_msg, pack_forward

if TYPE_CHECKING:
    from weir.router.connection import Client
    from weir.router.subscriptions import Sub

_FETCHES = 4  # bodies on their way from Redis for one client: bounds what one client costs per turn
_MESSAGE = 16384
_RETRY = 1.0  # seconds until a body that Redis did not give is asked for again


class Held:
    """Answers that wait for others of their block, or for a message's body: END of the same queue stays behind them.

    A client that heard of the end first would take the queue for its own when it hears the answer."""

    __slots__ = ("events", "ids")

    def __init__(self, *ids: bytes) -> None:
        self.ids = set(ids)
        self.events: list[tuple[bytes, bytes]] = []


class Outgoing:
    __slots__ = ("_bytes", "_events", "_fetching", "_items", "_marked", "client", "full", "held", "waiting")

    def __init__(self, client: Client) -> None:
        self.client = client
        self._items: list[bytes] = []
        self._bytes = 0
        self._marked = False
        self._fetching = 0
        self._events: list[tuple[bytes, bytes]] = []  # (entity id, event) that came while it was full
        self.held: list[Held] = []
        self.waiting: dict[bytes, tuple[Sub, Entry]] = {}
        self.full = False

    # In.

    def add(self, transmission: bytes) -> None:
        """An encoded transmission, to leave with this turn's others."""
        self._items.append(transmission)
        self._bytes += len(transmission)
        if not self._marked:
            self._marked = True
            self.client.router.mark(self)

    def event(self, entity_id: bytes, reply: bytes) -> None:
        """END, DELD and the like: delayed, as ids, while the client does not read; nobody else waits for that."""
        for held in self.held:
            if entity_id in held.ids:
                held.events.append((entity_id, reply))
                return
        if self.full:
            self._events.append((entity_id, reply))
        else:
            self.client.push(b"", entity_id, reply)

    def hold(self, *ids: bytes) -> Held:
        """Answers to commands on these, and those added to `ids`, are not sent yet."""
        held = Held(*ids)
        self.held.append(held)
        return held

    def release(self, held: Held) -> None:
        """They are."""
        self.held.remove(held)
        for entity_id, reply in held.events:
            self.event(entity_id, reply)

    def message(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """A message to fetch and send when there is room."""
        self.waiting[rcv_id] = (sub, entry)
        self.pump()

    def message_with(self, answers: list[bytes], held: Held, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        """Answers that leave together with a message."""
        self._fetching += 1
        self.client.router.delivery.body(rcv_id, entry, _Fetch(self, rcv_id, sub, entry, answers, held).got)

    def body(self, rcv_id: bytes, sub: Sub, entry: Entry, body: bytes) -> None:
        """A message that is at hand already: sent when there is room, else only its id is kept."""
        if self.waiting or not self.room():
            self.waiting[rcv_id] = (sub, entry)
        else:
            self.send(rcv_id, sub, entry, body)

    def send(self, rcv_id: bytes, sub: Sub, entry: Entry, body: bytes) -> None:
        sub.sent = int(time())
        client = self.client
        self.add(encode_msg(client.session, b"", rcv_id, entry.msg_id, body))
        if client.router.tracer is not None:
            trace_message(client, rcv_id, sub, entry)
        if client.fold is not None:
            client.fold.sent(rcv_id)

    def forget(self, rcv_id: bytes) -> None:
        """The queue's message is not this client's any more."""
        self.waiting.pop(rcv_id, None)
        if self.client.fold is not None:
            self.client.fold.sent(rcv_id)

    # Room.

    def room(self) -> bool:
        used = self.client.conn.buffered + self._bytes + self._fetching * _MESSAGE
        return used <= self.client.router.outgoing_bytes

    @property
    def pending_bytes(self) -> int:
        return self.client.conn.buffered + self._bytes

    def pump(self) -> None:
        """Fetch waiting messages, in the order they came, as far as there is room; then the fold's next page."""
        client = self.client
        waiting = self.waiting
        while waiting and self._fetching < _FETCHES and self.room():
            rcv_id = next(iter(waiting))
            sub, entry = waiting.pop(rcv_id)
            self._fetching += 1
            client.router.delivery.body(rcv_id, entry, _Fetch(self, rcv_id, sub, entry).got)
        if not waiting and client.fold is not None and self.room():
            client.fold.more()

    def on_writable(self) -> None:
        self.full = False
        events, self._events = self._events, []
        for entity_id, reply in events:
            self.client.push(b"", entity_id, reply)
        self.pump()
        self.client.router.notifications.writable(self.client)

    # Out.

    def flush(self) -> None:
        """Hand this turn's transmissions to the transport."""
        self._marked = False
        items = self._items
        self._items = []
        self._bytes = 0
        client = self.client
        if client.closed or not items:
            return
        conn = client.conn
        conn.send_contents(pack_forward(items))
        if conn.buffered > client.router.outgoing_bytes:
            self.full = True
        elif self.waiting or client.fold is not None:
            self.pump()

    def flush_now(self) -> None:
        if self._items:
            self.flush()

    def fetched(self, fetch: _Fetch, body: bytes | Unavailable | None) -> None:
        self._fetching -= 1
        client = self.client
        if client.closed:
            return
        for answer in fetch.answers:
            self.add(answer)
        if fetch.held is not None:
            self.release(fetch.held)
        rcv_id, sub, entry = fetch.rcv_id, fetch.sub, fetch.entry
        current = client.subs.get(rcv_id) is sub and sub.msg_id == entry.msg_id
        if current:  # neither displaced nor replaced meanwhile
            if body is UNAVAILABLE:
                client.router.loop.call_later(_RETRY, self._again, rcv_id, sub, entry)
            elif body:
                self.send(rcv_id, sub, entry, body)  # type: ignore[arg-type]
            else:
                client.router.delivery.skip(client, rcv_id, sub, entry)
                if client.fold is not None:
                    client.fold.sent(rcv_id)
        self.pump()

    def _again(self, rcv_id: bytes, sub: Sub, entry: Entry) -> None:
        client = self.client
        if not client.closed and client.subs.get(rcv_id) is sub and sub.msg_id == entry.msg_id:
            self.message(rcv_id, sub, entry)


class _Fetch:
    """A body on its way from Redis."""

    __slots__ = ("_out", "answers", "entry", "held", "rcv_id", "sub")

    def __init__(
        self,
        out: Outgoing,
        rcv_id: bytes,
        sub: Sub,
        entry: Entry,
        answers: Sequence[bytes] = (),
        held: Held | None = None,
    ) -> None:
        self._out = out
        self.rcv_id = rcv_id
        self.sub = sub
        self.entry = entry
        self.answers = answers
        self.held = held

    def got(self, body: bytes | Unavailable | None) -> None:
        self._out.fetched(self, body)
