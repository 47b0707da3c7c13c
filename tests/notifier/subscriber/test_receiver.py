"""Events on their way into a real store that fails now and then."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.notifier.subscriber.replicas import LIMITS, Pushes, Replicas, Settings, until
from weir.client.dialling import Dialler
from weir.client.reconnecting import Pauses
from weir.crypto.keys import generate
from weir.notifier.store.store import Store
from weir.notifier.subscriber.receiver import Receiver
from weir.notifier.subscriber.settings import Limits
from weir.notifier.subscriber.shared import Owned, Shared
from weir.notifier.subscriber.state import SubscriberStats
from weir.telemetry.otel import OtelTracer
from weir.telemetry.tracing import Tracer
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SmpQueueNtf, SubStatus
from weir.wire.smp.replies import NMSG

SERVER = ServerHost((b"smp.example",), b"5223", os.urandom(32))


class Bench:
    """A receiver, its store, and the subscriptions that its notifications are for."""

    def __init__(self, replicas: Replicas, store: Store, limits: Limits, tracer: Tracer) -> None:
        self.replicas = replicas
        self.store = store
        self.pushes = Pushes(store)
        self.fenced = 0
        self.switched: list[bool] = []
        self.active: list[bytes] = []
        self.stats = SubscriberStats()
        self._limits = limits
        self._tracer = tracer

    async def start(self) -> None:
        self.server_id = await self.store.servers.ensure(SERVER)
        epoch = await self.store.servers.own(self.server_id)
        assert epoch is not None
        dialler = Dialler(Settings(), allow_local=True, timeout=1.0)
        shared = Shared(
            self.store,
            self.pushes,
            dialler,
            self.stats,
            self._tracer,
            self._limits,
            use_service=True,
            on_active=self.active.append,
            on_fenced=lambda _: None,
        )
        self.owned = Owned(self.server_id, epoch, Pauses(0.01, 0.1))
        self.owned.state.name = "smp.example"
        self.receiver = Receiver(
            shared, self.owned, pause=lambda: self._switch(False), resume=lambda: self._switch(True),
            on_fenced=self._fenced,
        )  # fmt: skip

    def _switch(self, reading: bool) -> None:
        self.switched.append(reading)

    def _fenced(self) -> None:
        self.fenced += 1

    async def notifier(self) -> tuple[bytes, bytes]:
        """The notifier id and subscription id of a new subscription."""
        notifier_id = os.urandom(24)
        created = await self.store.subscriptions.create(
            await self.replicas.token(), SmpQueueNtf(SERVER, notifier_id), generate().pkcs8
        )
        assert created is not None
        return notifier_id, created.subscription.id

    def metas(self) -> list[bytes]:
        return [one.meta for one in self.pushes.delivered]


@pytest.fixture
async def bench(replicas: Replicas) -> AsyncIterator[Bench]:
    replicas.deadline = 1.0
    replica = await replicas.add()
    await replica.subscriber._background.close()
    bench = Bench(replicas, replica.store, replace(LIMITS, waiting=20), Tracer())
    await bench.start()
    yield bench
    bench.receiver.abandon()
    await bench.pushes.close()


async def test_a_notification_is_stored_counted_and_offered(bench: Bench) -> None:
    notifier_id, _ = await bench.notifier()
    bench.receiver.notification(notifier_id, NMSG(bytes(24), b"meta"))
    await bench.receiver.idle()
    assert len(bench.pushes.offered) == 1 and bench.stats.ntfReceivedOwn == {"smp.example": 1}
    assert bench.active == [notifier_id] and bench.owned.state.last_notification is not None
    bench.receiver.notification(bytes(24), NMSG(bytes(24), b"meta"))
    await bench.receiver.idle()
    assert (bench.stats.ntfReceived, bench.stats.ntfReceivedAuth) == (1, 1)
    assert bench.stats.ntfReceivedAuthOwn == {"smp.example": 1} and bench.active == [notifier_id]


async def test_what_waits_for_the_store_is_kept_and_too_much_stops_reading(bench: Bench) -> None:
    made = [await bench.notifier() for _ in range(30)]
    async with bench.replicas.store_down():
        for number, (notifier_id, _) in enumerate(made):
            bench.receiver.notification(notifier_id, NMSG(bytes(24), b"%02d" % number))
        assert bench.switched == [False] and bench.receiver.waiting == 30
        await until(lambda: len(bench.receiver._failed) == 30)
    await bench.receiver.idle()
    assert bench.switched == [False, True]
    await until(lambda: set(bench.metas()) == {b"%02d" % n for n in range(30)})


async def test_the_newest_notification_of_a_queue_stays_the_newest(bench: Bench) -> None:
    """The newer one waits behind the older one that the store has failed."""
    notifier_id, sub_id = await bench.notifier()
    bench.pushes.full = True
    async with bench.replicas.store_down():
        bench.receiver.notification(notifier_id, NMSG(os.urandom(24), b"older"))
        await until(lambda: bench.receiver._failed)
        bench.receiver.notification(notifier_id, NMSG(os.urandom(24), b"newer"))
    await bench.receiver.idle()
    found = await bench.store.subscriptions.fetch(sub_id)
    assert found is not None
    push = await bench.store.pushes.claim(found[1])
    assert push is not None and [one.meta for one in push.messages] == [b"newer"]


async def test_a_fenced_end_counts_for_nothing(bench: Bench) -> None:
    notifier_id, sub_id = await bench.notifier()
    bench.owned.epoch -= 1
    bench.receiver.ended(notifier_id, lambda: True)
    await bench.receiver.idle()
    found = await bench.store.subscriptions.fetch(sub_id)
    assert bench.fenced == 1 and found is not None and found[0].status is SubStatus.NEW
    bench.receiver.deleted(notifier_id)
    await bench.receiver.idle()
    found = await bench.store.subscriptions.fetch(sub_id)
    assert bench.fenced == 1 and found is not None and found[0].status is SubStatus.DELETED


async def test_an_unexpected_failure_holds_up_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    notifier_id, _ = await bench.notifier()

    async def broken(*_: object, **__: object) -> None:
        raise KeyError("secret")

    with monkeypatch.context() as breaking:
        breaking.setattr(bench.store.notifications, "received", broken)
        bench.receiver.notification(notifier_id, NMSG(bytes(24), b"lost"))
        await bench.receiver.idle()
    assert "could not be stored (KeyError in test_receiver.py" in caplog.text and "secret" not in caplog.text
    bench.receiver.notification(notifier_id, NMSG(bytes(24), b"next"))
    await until(lambda: bench.metas() == [b"next"])


async def test_abandoned_events_leave_no_task(bench: Bench) -> None:
    notifier_id, _ = await bench.notifier()
    async with bench.replicas.store_down():
        bench.receiver.notification(notifier_id, NMSG(bytes(24), b"1"))
        await until(lambda: bench.receiver._failed)
        bench.receiver.notification(notifier_id, NMSG(bytes(24), b"2"))
        bench.receiver.abandon()
        async with asyncio.timeout(5):
            await bench.receiver.idle()


async def test_the_push_continues_the_trace_of_its_nmsg(replicas: Replicas) -> None:
    """The span carries no id."""
    replica = await replicas.add()
    await replica.subscriber._background.close()
    exporter = InMemorySpanExporter()
    tracer = OtelTracer(exporter, ratio=1.0, instance="edge", batch=False)
    bench = Bench(replicas, replica.store, LIMITS, tracer)
    await bench.start()
    notifier_id, _ = await bench.notifier()
    bench.receiver.notification(notifier_id, NMSG(bytes(24), b"meta"))
    bench.receiver.notification(bytes(24), NMSG(bytes(24), b"meta"))
    await bench.receiver.idle()
    spans = exporter.get_finished_spans()
    assert sorted((span.name, dict(span.attributes or {})["weir.result"]) for span in spans) == [
        ("NMSG", "AUTH"),
        ("NMSG", "OK"),
    ]
    [context] = bench.pushes.contexts
    stored = next(span for span in spans if dict(span.attributes or {})["weir.result"] == "OK")
    assert stored.context is not None and context[:16] == stored.context.trace_id.to_bytes(16, "big")
    await bench.pushes.close()
    tracer.close()
