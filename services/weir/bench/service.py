"""`weir bench service`: a service with many queues comes back: SUBS → SOKS → MSG … → ALLS."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from weir.bench.lanes import open_client
from weir.bench.system import RedisUsage, redis_usage, rss_bytes
from weir.bench.target import BenchError, Target
from weir.client.smp import Request, SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import generate
from weir.transport.handshake import ServiceCredentials
from weir.wire.commands import NEW, SEND, SUBS, ServiceRole
from weir.wire.replies import ALLS, IDS, MSG, OK, SOKS
from weir.wire.transmission import ServerTransmission
from weir.wire.versions import RCV_SERVICE

_BATCH = 500
_SENDS = 64
_SAMPLE = 0.02

Fill = Callable[[bytes, int], Awaitable[None]]


@dataclass(frozen=True)
class ServiceOptions:
    target: Target
    queues: int = 1000
    waiting: int = 1000  # of them have a message
    rounds: int = 5
    size: int = 1000
    slow_seconds: float = 0.0  # one more round in which the client does not read for so long
    timeout: float = 600.0


@dataclass(frozen=True)
class ServiceResult:
    queues: int
    waiting: int
    rounds: int
    subs_to_soks_ms: float
    subs_to_first_msg_ms: float | None
    subs_to_alls_ms: float
    redis_calls: int | None = None  # of one round
    redis_ms: float | None = None
    edge_mib_above_idle: float | None = None  # while the slow client did not read


@dataclass
class _Round:
    soks: float = 0.0
    first: float | None = None
    alls: float = 0.0
    messages: int = 0


def run_service(options: ServiceOptions, fill: Fill | None = None) -> ServiceResult:
    """`fill(service_id, count)` puts queues straight into the store; without it all are made by NEW."""
    import uvloop

    result: ServiceResult = uvloop.run(_run(options, fill))
    return result


async def _run(options: ServiceOptions, fill: Fill | None) -> ServiceResult:
    target = options.target
    credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    await _build(options, credentials, fill)
    rounds = []
    before = after = None
    for _ in range(options.rounds):
        before = _redis(target)
        rounds.append(await _round(options, credentials))
        after = _redis(target)
    above = await _slow_round(options, credentials) if options.slow_seconds else None
    firsts = [one.first for one in rounds if one.first is not None]
    return ServiceResult(
        options.queues,
        options.waiting,
        options.rounds,
        statistics.median(one.soks for one in rounds) * 1000,
        statistics.median(firsts) * 1000 if firsts else None,
        statistics.median(one.alls for one in rounds) * 1000,
        after.commands - before.commands if before and after else None,
        (after.cpu_s - before.cpu_s) * 1000 if before and after else None,
        above,
    )


def _redis(target: Target) -> RedisUsage | None:
    return redis_usage(target.redis_url) if target.redis_url else None


async def _build(options: ServiceOptions, credentials: ServiceCredentials, fill: Fill | None) -> None:
    """The queues that will have a message are made by NEW, the others by `fill` where there is one."""
    target = options.target
    client = await open_client(target, credentials)
    if client.session.version < RCV_SERVICE or client.service_id is None:
        raise BenchError(f"the router has no messaging services (version {client.session.version})")
    made = options.queues
    if fill is not None:
        made = options.waiting
        service_id = client.service_id
        await client.close()
        await fill(service_id, options.queues - options.waiting)
        client = await open_client(target, credentials)
    senders: list[bytes] = []
    while len(senders) < made:
        count = min(_BATCH, made - len(senders))
        keys = [generate("x25519") for _ in range(count)]
        requests = [Request(NEW(key.spki, generate("x25519").public, target.basic_auth), b"", key) for key in keys]
        for answer in await client.send_many(requests, timeout=options.timeout):
            if not isinstance(answer, IDS):
                raise BenchError(f"the router makes no queue: {answer}")
            senders.append(answer.snd_id)
    await client.close()
    async with await open_client(target) as sender:
        body = bytes(options.size)
        for start in range(0, options.waiting, _SENDS):
            requests = [Request(SEND(False, body), snd_id) for snd_id in senders[start : start + _SENDS]]
            requests = requests[: options.waiting - start]
            for answer in await sender.send_many(requests, timeout=options.timeout):
                if not isinstance(answer, OK):
                    raise BenchError(f"the router takes no message: {answer}")


class _Listener:
    """Notes when each of the service's milestones arrives."""

    def __init__(self, client: SmpClient) -> None:
        self.result = _Round()
        self.done = asyncio.Event()
        self.start = time.perf_counter()
        client.on_event = self._on_event
        client.on_close = self.done.set

    def on_soks(self, answer: object) -> None:
        if isinstance(answer, SOKS):
            self.result.soks = time.perf_counter() - self.start
        else:
            self.done.set()

    def _on_event(self, event: ServerTransmission) -> None:
        if isinstance(event.reply, MSG):
            self.result.messages += 1
            if self.result.first is None:
                self.result.first = time.perf_counter() - self.start
        elif isinstance(event.reply, ALLS):
            self.result.alls = time.perf_counter() - self.start
            self.done.set()


async def _subs(client: SmpClient) -> _Listener:
    service = client.connection.service
    assert service is not None
    listener = _Listener(client)
    client.submit(SUBS(0, bytes(16)), service.service_id, service.key_pair, listener.on_soks)
    client.flush()
    return listener


async def _finish(options: ServiceOptions, client: SmpClient, listener: _Listener) -> _Round:
    async with asyncio.timeout(options.timeout):
        await listener.done.wait()
    result = listener.result
    if not result.soks or not result.alls:
        raise BenchError("SUBS was not answered by SOKS and ALLS")
    if result.messages != options.waiting:
        raise BenchError(f"{result.messages} messages came before ALLS, {options.waiting} were waiting")
    await client.close()
    return result


async def _round(options: ServiceOptions, credentials: ServiceCredentials) -> _Round:
    """Nothing is acknowledged, so the next round finds the same messages."""
    client = await open_client(options.target, credentials)
    return await _finish(options, client, await _subs(client))


async def _slow_round(options: ServiceOptions, credentials: ServiceCredentials) -> float | None:
    """MiB by which the edges grew while the client did not read."""
    pids = options.target.pids
    if not pids:
        return None
    idle = sum(map(rss_bytes, pids))
    client = await open_client(options.target, credentials)
    listener = await _subs(client)
    client.connection.pause_reading()
    most = idle
    until = time.monotonic() + options.slow_seconds
    while time.monotonic() < until:
        await asyncio.sleep(_SAMPLE)
        most = max(most, sum(map(rss_bytes, pids)))
    client.connection.resume_reading()
    await _finish(options, client, listener)
    return (most - idle) / (1 << 20)
