"""`weir bench sub`: a client comes back with many queues and subscribes to all of them in batches."""

import asyncio
import os
import time
from dataclasses import dataclass

from weir.bench.lanes import Queue, key_type_for, open_client
from weir.bench.system import spent, usage
from weir.bench.target import BenchError, Target
from weir.bench.workers import Worker, default_processes, pool, split
from weir.client.smp import Request, SmpClient
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyType, dh, generate
from weir.transport.client import ClientConnection
from weir.wire.commands import NEW, SUB
from weir.wire.replies import IDS, OK, SOK
from weir.wire.smp import encode_command
from weir.wire.transmission import decode_replies, encode_client, for_auth, pack_forward

_WINDOW = 4  # blocks a client sends ahead
_CREATE = 500


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
        workers.tell("go")
        finished = workers.gather()
        used = spent(before, usage(target.pids, target.redis_url))
    wall = max(seconds for seconds, _, _ in finished)
    known = bool(target.pids)
    return SubscribeResult(
        options.queues,
        options.queues / wall,
        sum(errors for _, errors, _ in finished),
        max(cpu / seconds for seconds, _, cpu in finished),
        used.edges_s / options.queues * 1e6 if known else None,
        used.redis_s / options.queues * 1e6 if known else None,
        options.queues / (used.edges_s + used.redis_s) if known else None,
    )


async def create_queues(target: Target, client: SmpClient, count: int, key_type: KeyType) -> list[Queue]:
    """Many queues at once, unsecured and not subscribed."""
    kind = key_type_for(client.session.version, key_type)
    queues: list[Queue] = []
    while len(queues) < count:
        keys = [generate(kind) for _ in range(min(_CREATE, count - len(queues)))]
        dh_key = generate("x25519").public
        answers = await client.send_many(
            [Request(NEW(key.spki, dh_key, target.basic_auth, False), b"", key) for key in keys], timeout=120
        )
        for key, answer in zip(keys, answers, strict=True):
            if not isinstance(answer, IDS):
                raise BenchError(f"the router makes no queue: {answer}")
            queues.append(Queue(answer.rcv_id, answer.snd_id, key, None))
    return queues


def subscriptions(connection: ClientConnection, queues: list[Queue]) -> list[bytes]:
    """The blocks' contents of SUB for every queue, authorised ahead of time so that only the router is measured."""
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
            if connection.server_key is None:
                raise BenchError("the router offers no key for authenticators: use --keys ed25519")
            auth = authenticate(dh(connection.server_key, key.private), corr_id, authorized)
        else:
            auth = sign(key.type, key.private, authorized)
        encoded.append(encode_client(session, sent, auth, service_sig))
    return pack_forward(encoded)


class Sender:
    """Sends blocks with a window, and knows when everything is answered."""

    def __init__(self, connection: ClientConnection, contents: list[bytes], expected: int) -> None:
        self.done = asyncio.Event()
        self.errors = 0
        self._connection = connection
        self._contents = iter(contents)
        self._counts = [content[0] for content in contents]
        self._left = expected
        self._answered = 0
        self._next_mark = self._counts[0] if self._counts else 0
        self._mark = 0
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
                continue  # an event
            if not isinstance(transmission.reply, OK | SOK):
                self.errors += 1
            self._answered += 1
            if self._answered >= self._next_mark and self._mark + 1 < len(self._counts):
                self._mark += 1
                self._next_mark += self._counts[self._mark]
                self._send()
        if self._answered >= self._left:
            self.done.set()

    def on_writable(self) -> None:
        pass

    def on_closed(self) -> None:
        self.errors += self._left - self._answered
        self.done.set()


async def _subscribe(worker: Worker, share: _Share) -> tuple[float, int, float]:
    options, target = share.options, share.options.target
    senders = []
    for count in split(share.queues, share.connections):
        client = await open_client(target)
        queues = await create_queues(target, client, count, options.keys)
        await client.close()
        again = await open_client(target)
        senders.append(Sender(again.connection, subscriptions(again.connection, queues), count))
    await worker.ready()
    cpu, start = time.process_time(), time.monotonic()
    for sender in senders:
        sender.start()
    for sender in senders:
        await sender.done.wait()
    return time.monotonic() - start, sum(sender.errors for sender in senders), time.process_time() - cpu
