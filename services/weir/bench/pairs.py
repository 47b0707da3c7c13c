"""A pair of a sender and a recipient that repeats one cycle: SEND → OK, MSG → ACK → OK."""

from array import array
from collections.abc import Callable
from time import monotonic

from weir.bench.clients import CommandSender, Queue, describe
from weir.client.smp import SmpClient
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import ACK, SEND
from weir.wire.smp.replies import MSG, OK
from weir.wire.smp.transmission import decode_replies


class Counts:
    """The results of all pairs of one process between `begin` and `end`."""

    def __init__(self) -> None:
        self.begin = self.end = 0.0
        self.cycles = array("d")  # seconds from SEND to the OK that completed the cycle
        self.deliveries = array("d")  # seconds from SEND to MSG
        self.errors = 0
        self.first_error = ""

    def error(self, what: str) -> None:
        self.errors += 1
        self.first_error = self.first_error or what


class Pair:
    """Runs one cycle at a time. The next cycle starts when both sides have received OK."""

    __slots__ = (
        "_command",
        "_counts",
        "_delivered",
        "_oks_missing",
        "_recipient",
        "_running",
        "_sender",
        "_started",
        "_version",
    )

    def __init__(self, sender: SmpClient, recipient: SmpClient, queue: Queue, size: int, counts: Counts) -> None:
        self._sender = CommandSender(sender.connection, queue.snd_id, queue.snd_key)
        self._recipient = CommandSender(recipient.connection, queue.rcv_id, queue.rcv_key)
        self._version = recipient.session.version
        self._command = encode_command(sender.session.version, SEND(False, bytes(size)))
        self._counts = counts
        self._running = False
        self._oks_missing = 0
        self._started = self._delivered = 0.0
        sender.connection.attach(_Side(self._on_sender, self._on_closed))
        recipient.connection.attach(_Side(self._on_recipient, self._on_closed))

    def start(self) -> None:
        self._running = True
        self._start_cycle()

    def stop(self) -> None:
        self._running = False

    def _start_cycle(self) -> None:
        self._oks_missing = 2
        self._started = monotonic()
        self._sender.send(self._command)

    def _on_sender(self, content: bytes) -> None:
        for transmission in decode_replies(self._sender.session, content):
            if isinstance(transmission.reply, OK):
                self._on_ok()
            else:
                self._failed(describe(transmission.reply))

    def _on_recipient(self, content: bytes) -> None:
        for transmission in decode_replies(self._recipient.session, content):
            reply = transmission.reply
            if isinstance(reply, MSG):
                self._delivered = monotonic()
                self._recipient.send(encode_command(self._version, ACK(reply.msg_id)))
            elif isinstance(reply, OK):
                self._on_ok()
            else:
                self._failed(describe(reply))

    def _on_ok(self) -> None:
        self._oks_missing -= 1
        if self._oks_missing:
            return
        now = monotonic()
        counts = self._counts
        if counts.begin <= now < counts.end:
            counts.cycles.append(now - self._started)
            counts.deliveries.append(self._delivered - self._started)
        if self._running:
            self._start_cycle()

    def _failed(self, what: str) -> None:
        self._running = False
        self._counts.error(what)

    def _on_closed(self) -> None:
        if self._running:
            self._failed("the router closed the connection")


class _Side:
    """The handler of one connection."""

    __slots__ = ("on_block", "on_closed")

    def __init__(self, on_block: Callable[[bytes], None], on_closed: Callable[[], None]) -> None:
        self.on_block = on_block
        self.on_closed = on_closed

    def on_writable(self) -> None:
        pass
