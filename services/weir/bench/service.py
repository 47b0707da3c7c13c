"""`weir bench service`: a service with many queues reconnects: SUBS → SOKS → MSG … → ALLS.

The bench creates the queues once and sends a message to some of them. In every round, the service subscribes and
receives the messages, but acknowledges none, so that the next round finds the same messages.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass

from weir.bench.clients import open_client, send_to_each
from weir.bench.created import Created
from weir.bench.store import Fill
from weir.bench.system import RedisUsage, redis_usage, rss_bytes
from weir.bench.target import BenchError, Target
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import SUBS, ServiceRole
from weir.wire.smp.replies import ALLS, MSG, SOKS
from weir.wire.smp.transmission import ServerTransmission
from weir.wire.versions import RCV_SERVICE

_SAMPLE = 0.02


@dataclass(frozen=True)
class ServiceOptions:
    target: Target
    queues: int = 1000
    waiting: int = 1000  # number of queues that have a message
    rounds: int = 5
    size: int = 1000
    slow_seconds: float = 0.0  # if not 0: one more round, in which the client stops reading for this time
    timeout: float = 600.0


@dataclass(frozen=True)
class ServiceResult:
    queues: int
    waiting: int
    rounds: int
    subs_to_soks_ms: float
    subs_to_first_msg_ms: float | None
    subs_to_alls_ms: float
    redis_calls: int | None = None  # in one round
    redis_ms: float | None = None
    edge_mib_above_idle: float | None = None  # while the client did not read


@dataclass
class _Round:
    soks: float = 0.0
    first: float | None = None
    alls: float = 0.0
    messages: int = 0


def run_service(options: ServiceOptions, fill: Fill | None = None) -> ServiceResult:
    """Run the bench. `fill` writes the queues without messages into the store. Without it, NEW creates all queues."""
    import uvloop

    result: ServiceResult = uvloop.run(_run(options, fill))
    return result


async def _run(options: ServiceOptions, fill: Fill | None) -> ServiceResult:
    async with Created(options.target) as created:
        return await _measure(options, fill, created)


async def _measure(options: ServiceOptions, fill: Fill | None, created: Created) -> ServiceResult:
    target = options.target
    credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    await _create_service(options, credentials, fill, created)
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


async def _create_service(
    options: ServiceOptions, credentials: ServiceCredentials, fill: Fill | None, created: Created
) -> None:
    """Create the service's queues and send the messages.

    NEW creates the queues that get a message. `fill`, if given, writes the others.
    """
    target = options.target
    client = await open_client(target, credentials)
    if client.session.version < RCV_SERVICE or client.service_id is None:
        raise BenchError(f"the router does not support receive services (version {client.session.version})")
    created.add_service(client)
    count = options.queues
    if fill is not None:
        count = options.waiting
        service_id = client.service_id
        await client.close()
        await fill(service_id, options.queues - options.waiting, created.filled)
        client = await open_client(target, credentials)
    queues = await created.queues(client, count, "x25519", subscribe=True, timeout=options.timeout)
    await client.close()
    await send_to_each(target, queues[: options.waiting], options.size, timeout=options.timeout)


class _Listener:
    """Records the times at which SOKS, the first message and ALLS arrive."""

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


async def _send_subs(client: SmpClient) -> _Listener:
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
        raise BenchError("the router did not answer SUBS with SOKS and ALLS")
    if result.messages != options.waiting:
        raise BenchError(f"{options.waiting} messages were waiting, {result.messages} arrived before ALLS")
    await client.close()
    return result


async def _round(options: ServiceOptions, credentials: ServiceCredentials) -> _Round:
    client = await open_client(options.target, credentials)
    return await _finish(options, client, await _send_subs(client))


async def _slow_round(options: ServiceOptions, credentials: ServiceCredentials) -> float | None:
    """Return the growth of the edges' memory, in MiB, while the client does not read."""
    pids = options.target.pids
    if not pids:
        return None
    idle = sum(map(rss_bytes, pids))
    client = await open_client(options.target, credentials)
    listener = await _send_subs(client)
    client.connection.pause_reading()
    most = idle
    until = time.monotonic() + options.slow_seconds
    while time.monotonic() < until:
        await asyncio.sleep(_SAMPLE)
        most = max(most, sum(map(rss_bytes, pids)))
    client.connection.resume_reading()
    await _finish(options, client, listener)
    return (most - idle) / (1 << 20)
