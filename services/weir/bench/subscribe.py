"""`weir bench sub`: a client reconnects and subscribes to many queues in batches."""

import asyncio
import os
import time
from dataclasses import dataclass

from weir.bench.clients import Queue, open_client, session_key
from weir.bench.publickey import x25519_us
from weir.bench.system import spent, usage
from weir.bench.target import Target
from weir.bench.workers import Worker, default_processes, pool, split
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyType, dh
from weir.transport.smp import SmpClientConnection
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import SUB
from weir.wire.smp.replies import OK, SOK
from weir.wire.smp.transmission import decode_replies, encode_client, for_auth, pack_forward

_WINDOW = 4  # blocks that wait for their answers at once


@dataclass(frozen=True)
class SubscribeOptions:
    target: Target
    queues: int = 10000
    connections: int = 2
    keys: KeyType = "x25519"
    processes: int = 0


@dataclass(frozen=True)
class SubscribeResult:
    queues: int
    subs_per_s: float
    errors: int
    generator_cores: float
    sub_edge_us: float | None = None
    sub_redis_us: float | None = None
    subs_per_cpu_s: float | None = None
    x25519_us: float | None = None  # CPU time of libsodium for one X25519
    sub_x25519s: float | None = None  # CPU time of one SUB (edges and Redis) divided by x25519_us


@dataclass(frozen=True)
class _Share:
    options: SubscribeOptions
    queues: int
    connections: int


def run_subscribe(options: SubscribeOptions) -> SubscribeResult:
    processes = options.processes or default_processes(options.connections)
    shares = [
        _Share(options, queues, connections)
        for queues, connections in zip(
            split(options.queues, processes), split(options.connections, processes), strict=True
        )
        if connections
    ]
    target = options.target
    with pool(_subscribe, shares) as workers:
        workers.gather()
        before = usage(target.pids, target.redis_url)
        workers.start_all("go")
        finished = workers.gather()
        used = spent(before, usage(target.pids, target.redis_url))
    wall = max(seconds for seconds, _, _ in finished)
    known = bool(target.pids)
    unit_us = x25519_us()
    return SubscribeResult(
        options.queues,
        options.queues / wall,
        sum(errors for _, errors, _ in finished),
        max(cpu / seconds for seconds, _, cpu in finished),
        used.edges_s / options.queues * 1e6 if known else None,
        used.redis_s / options.queues * 1e6 if known else None,
        options.queues / (used.edges_s + used.redis_s) if known else None,
        unit_us,
        (used.edges_s + used.redis_s) / options.queues * 1e6 / unit_us if known else None,
    )


def subscriptions(connection: SmpClientConnection, queues: list[Queue]) -> list[bytes]:
    """Return block contents with a SUB for every queue.

    The SUBs are authorised before the measurement, so that the generator's cryptography is not measured.
    """
    session = connection.session
    command = encode_command(session.version, SUB())
    service = connection.service
    encoded = []
    for queue in queues:
        corr_id = os.urandom(24)
        authorized, sent = for_auth(session, corr_id, queue.rcv_id, command)
        service_sig = None
        if service is not None:
            service_sig = sign("ed25519", service.key, authorized)
            authorized = service.cert_hash + authorized
        key = queue.rcv_key
        if key.type == "x25519":
            auth = authenticate(dh(session_key(connection), key.private), corr_id, authorized)
        else:
            auth = sign(key.type, key.private, authorized)
        encoded.append(encode_client(session, sent, auth, service_sig))
    return pack_forward(encoded)


class BlockSender:
    """Sends blocks, `_WINDOW` at once, and sets `done` when all commands are answered."""

    def __init__(self, connection: SmpClientConnection, contents: list[bytes], expected: int) -> None:
        self.done = asyncio.Event()
        self.errors = 0
        self._connection = connection
        self._contents = iter(contents)
        self._counts = [content[0] for content in contents]
        self._expected = expected
        self._answered = 0
        self._block = 0
        self._end_of_block = self._counts[0] if self._counts else 0
        connection.attach(self)

    def start(self) -> None:
        for _ in range(_WINDOW):
            self._send()

    def _send(self) -> None:
        content = next(self._contents, None)
        if content is not None:
            self._connection.send_contents([content])

    def on_block(self, content: bytes) -> None:
        for transmission in decode_replies(self._connection.session, content):
            if not transmission.corr_id:
                continue  # an event has no correlation id
            if not isinstance(transmission.reply, OK | SOK):
                self.errors += 1
            self._answered += 1
            if self._answered >= self._end_of_block and self._block + 1 < len(self._counts):
                self._block += 1
                self._end_of_block += self._counts[self._block]
                self._send()
        if self._answered >= self._expected:
            self.done.set()

    def on_writable(self) -> None:
        pass

    def on_closed(self) -> None:
        self.errors += self._expected - self._answered
        self.done.set()


async def _subscribe(worker: Worker, share: _Share) -> tuple[float, int, float]:
    options, target = share.options, share.options.target
    created = worker.creates(target)
    senders = []
    for count in split(share.queues, share.connections):
        async with await open_client(target) as client:
            queues = await created.queues(client, count, options.keys)
        connection = (await open_client(target)).connection
        senders.append(BlockSender(connection, subscriptions(connection, queues), count))
    await worker.report()
    cpu, start = time.process_time(), time.monotonic()
    for sender in senders:
        sender.start()
    for sender in senders:
        await sender.done.wait()
    return time.monotonic() - start, sum(sender.errors for sender in senders), time.process_time() - cpu
