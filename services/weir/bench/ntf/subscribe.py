"""How fast a notification router is subscribed to an SMP router after a restart, with and without a service.

Notifiers are written into the SMP router's store, and their subscriptions into the notification router's. The
subscriber then runs in this process, with the real store and real connections:

    first       every notifier is subscribed to with NSUB, which associates it with the service
    service     a new subscriber: one NSUBS for all
    queues      a second deployment without a service: NSUB for each, as after every restart

Times are from the start of the subscriber until everything is active.
"""

import asyncio
import gc
import os
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from weir.bench.own_router import own_router
from weir.bench.store import open_store
from weir.bench.subscribe import SubscribeOptions, run_subscribe
from weir.bench.system import cpu_seconds, rss_bytes
from weir.bench.target import BenchError, Target
from weir.crypto.keys import KeyPair, generate
from weir.notifier.config import Push, Subscriber
from weir.notifier.push.dispatcher import Dispatcher
from weir.notifier.stats import Stats
from weir.notifier.store.store import Store, StoreConfig
from weir.notifier.subscriber.state import ServerState
from weir.notifier.subscriber.subscriber import Subscriber as RunningSubscriber
from weir.redis.embedded import start_embedded
from weir.router.store.bulk import bulk_queues
from weir.wire.ntf.types import DeviceToken, PushProvider, SmpQueueNtf

_LIMIT = 3600.0
_TOKENS = 1000
_TOGETHER = 500  # subscriptions that are written at the same time
_POLL = 0.002


@dataclass(frozen=True)
class NtfSubscribeOptions:
    few: int = 1000
    many: int = 100_000
    one_by_one: int = 100_000


@dataclass(frozen=True)
class NtfSubscribeResult:
    few: int
    many: int
    associated_per_s: float  # the first time: NSUB with the service's signature
    few_active_ms: float  # NSUBS
    many_active_ms: float
    many_against_few: float
    service_bytes_per_subscription: float  # memory of this process
    one_by_one: int
    nsub_per_s: float
    sub_per_s: float  # the same SMP router's rate for SUB (`weir bench sub`)
    nsub_against_sub: float
    queue_bytes_per_subscription: float
    subscriber_us: float  # CPU time of the subscriber for one NSUB


@dataclass(frozen=True)
class _Run:
    seconds: float
    cpu_s: float
    grown: int  # bytes of memory


def run_ntf_subscribe(options: NtfSubscribeOptions) -> NtfSubscribeResult:
    import uvloop

    with tempfile.TemporaryDirectory(prefix="weir-bench-") as directory, own_router(1) as target:
        redis = start_embedded(Path(directory))
        try:
            config = StoreConfig(redis.url, os.urandom(32), os.urandom(32))
            result: NtfSubscribeResult = uvloop.run(_run(options, target, config))
        finally:
            redis.stop()
        queues = run_subscribe(SubscribeOptions(target, queues=20_000, connections=1))
        return replace(result, sub_per_s=queues.subs_per_s, nsub_against_sub=result.nsub_per_s / queues.subs_per_s)


async def _run(options: NtfSubscribeOptions, target: Target, config: StoreConfig) -> NtfSubscribeResult:
    few, many, single = (replace(config, prefix=name) for name in ("few", "many", "single"))
    await _fill(target, few, options.few)
    await _start(few, options.few)
    few_again = await _start(few, options.few)
    await _fill(target, many, options.many)
    first = await _start(many, options.many)
    again = await _start(many, options.many)
    await _fill(target, single, options.one_by_one)
    await _start(single, options.one_by_one, service=False)
    queues = await _start(single, options.one_by_one, service=False)
    return NtfSubscribeResult(
        few=options.few,
        many=options.many,
        associated_per_s=options.many / first.seconds,
        few_active_ms=few_again.seconds * 1000,
        many_active_ms=again.seconds * 1000,
        many_against_few=again.seconds / few_again.seconds,
        service_bytes_per_subscription=again.grown / options.many,
        one_by_one=options.one_by_one,
        nsub_per_s=options.one_by_one / queues.seconds,
        sub_per_s=0.0,
        nsub_against_sub=0.0,
        queue_bytes_per_subscription=queues.grown / options.one_by_one,
        subscriber_us=queues.cpu_s / options.one_by_one * 1e6,
    )


async def _fill(target: Target, config: StoreConfig, count: int) -> None:
    """Make notifiers at the SMP router and subscriptions to them, without any client."""
    key = generate("x25519")
    smp_store = await open_store(target)
    notifiers: list[bytes] = []
    try:
        day = int(time.time()) // 86400
        async for made in bulk_queues(smp_store.core, count, day=day, rcv_key=key.spki, notifier=True):
            assert made.ntf_id is not None
            notifiers.append(made.ntf_id)
    finally:
        await smp_store.close()
    await _subscribe(target, config, notifiers, key)


async def _subscribe(target: Target, config: StoreConfig, notifiers: list[bytes], key: KeyPair) -> None:
    store = await Store.open(config, edge=False)
    try:
        server = target.address.server_host
        tokens = []
        for _ in range(min(_TOKENS, len(notifiers))):
            device = DeviceToken(PushProvider.APNS_NULL, os.urandom(32))
            registered = await store.tokens.register(device, generate("x25519").spki, generate("x25519").public)
            assert registered is not None
            await store.tokens.activate(registered.token, registered.token.code)
            token = await store.tokens.fetch(registered.token.id)
            assert token is not None
            tokens.append(token)
        for at in range(0, len(notifiers), _TOGETHER):
            part = notifiers[at : at + _TOGETHER]
            made = await asyncio.gather(
                *(
                    store.subscriptions.create(tokens[n % len(tokens)], SmpQueueNtf(server, notifier_id), key.pkcs8)
                    for n, notifier_id in enumerate(part, at)
                )
            )
            if not all(made):
                raise BenchError("a subscription could not be made")
    finally:
        await store.close()


async def _start(config: StoreConfig, count: int, *, service: bool = True) -> _Run:
    """Start a subscriber, and wait until all `count` notifiers are active."""
    settings = Subscriber(use_service_credentials=service, allow_local_servers=True)
    async with _opened(config) as store:
        subscriber = RunningSubscriber(store, Dispatcher(store, {}, Stats(), Push()), settings)
        gc.collect()
        pid = os.getpid()
        memory, cpu, began = rss_bytes(pid), cpu_seconds(pid), time.monotonic()
        await subscriber.start()
        try:
            async with asyncio.timeout(_LIMIT):
                while not _is_active(subscriber.servers(), count):
                    await asyncio.sleep(_POLL)
            took, used = time.monotonic() - began, cpu_seconds(pid) - cpu
            gc.collect()
            grown = rss_bytes(pid) - memory
        finally:
            await subscriber.close()
    return _Run(took, used, grown)


def _is_active(servers: list[ServerState], count: int) -> bool:
    return len(servers) == 1 and servers[0].subscribed and servers[0].count == count


@asynccontextmanager
async def _opened(config: StoreConfig) -> AsyncIterator[Store]:
    store = await Store.open(config)
    try:
        await store.stats.publish_edge({})
        yield store
    finally:
        await store.close()
