"""Queues that no service covers: pages, batches, and what stays in memory."""

import asyncio
import gc
import sys
import types
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.notifier.subscriber.replicas import LIMITS, Notifier, Replicas, notifiers, until
from tests.router.fleet import Fleet
from weir.client.smp import SmpClient
from weir.crypto.keys import parse_private
from weir.notifier.store.records import Subscription
from weir.notifier.store.servers import Servers
from weir.notifier.store.store import Core, Store
from weir.notifier.subscriber import queues
from weir.notifier.subscriber.session import Session
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import OK

SMALL = replace(LIMITS, batch=3, batches_in_flight=2, batches_in_page=4, subscriptions=24)


async def test_behaviour_19_pages_of_batches(fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses are written back page by page; what is in memory and in flight is bounded."""
    replica = await replicas.add(use_service_credentials=False, limits=SMALL)
    made = await notifiers(fleet, 60)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    written: list[int] = []
    in_flight, most, held = 0, 0, 0
    subscribed, send_each = replica.store.servers.subscribed, SmpClient.send_each

    async def watched(server_id: bytes, epoch: int, subs: Sequence[Subscription], service_id: bytes | None) -> None:
        nonlocal held
        written.append(len(subs))
        held = max(held, replica.subscriber._shared.budget.used)
        await subscribed(server_id, epoch, subs, service_id)

    async def counted(self: SmpClient, requests: Any, **options: Any) -> Any:
        nonlocal in_flight, most
        sent = list(requests)
        assert len(sent) <= 3
        in_flight += len(sent)
        most = max(most, in_flight)
        answers = await send_each(self, sent, **options)
        in_flight -= len(sent)
        return answers

    monkeypatch.setattr(replica.store.servers, "subscribed", watched)
    monkeypatch.setattr(SmpClient, "send_each", counted)
    client.connection.abort()
    await until(lambda: session.client not in (None, client) and session.state.queues_active == 60)
    await replicas.until_status(made)
    assert sum(written) == 60 and all(12 <= page <= 24 for page in written[:-1]), written
    assert most == 6 and held <= 24


async def test_snew_does_not_wait_for_the_whole_walk(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await replicas.add(use_service_credentials=False, limits=SMALL)
    made = await notifiers(fleet, 41)
    await replicas.subscribe_all(made[:40], fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    sent: list[bytes] = []
    slow = asyncio.Event()
    send_each = SmpClient.send_each

    async def watched(self: SmpClient, requests: Any, **options: Any) -> Any:
        listed = list(requests)
        sent.extend(one.entity_id for one in listed)
        if len(sent) > 12:
            await slow.wait()
        return await send_each(self, listed, **options)

    monkeypatch.setattr(SmpClient, "send_each", watched)
    client.connection.abort()
    await until(lambda: len(sent) > 12)
    await replicas.subscribe(made[40], fleet.address())
    await until(lambda: session._queues._new or made[40].id in sent)
    slow.set()
    await replicas.until_status(made)
    assert sent.index(made[40].id) < 36, "before the last page"


async def test_too_many_new_subscriptions_are_found_by_a_walk(fleet: Fleet, replicas: Replicas) -> None:
    replica = await replicas.add(limits=replace(LIMITS, new_subscriptions=1))
    made = await notifiers(fleet, 30)
    await replicas.subscribe_all(made[:1], fleet.address())
    await replicas.subscribe_all(made[1:], fleet.address())
    assert replica.sessions[0].state.count == 30


async def test_an_end_that_comes_behind_the_answer_stays(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NSUB is answered, the queue is deleted, and only then is the page written."""
    replica = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 2)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    owner = await fleet.client()
    send_each = SmpClient.send_each

    async def deleted_meanwhile(self: SmpClient, requests: Any, **options: Any) -> Any:
        answers = await send_each(self, requests, **options)
        assert await owner.do(cmd.DEL(), made[0].queue.rcv_id, made[0].queue.rcv_key) == OK()
        await until(lambda: session._queues._gone)
        return answers

    monkeypatch.setattr(SmpClient, "send_each", deleted_meanwhile)
    client.connection.abort()
    await replicas.until_status(made[:1], SubStatus.DELETED)
    await until(lambda: session.state.subscribed)
    await replicas.until_status(made[1:])
    assert await replicas.status(made[0]) is SubStatus.DELETED


async def test_a_key_that_is_none(fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other subscriptions of the batch go on."""
    replica = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 2)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    monkeypatch.setattr(queues, "parse_private", lambda der: None if der == made[0].key.pkcs8 else parse_private(der))
    client.connection.abort()
    await replicas.until_status(made[:1], SubError(b"unusable notifier key"))
    await replicas.until_status(made[1:])


def reachable_bytes(*roots: object) -> int:
    """The memory of everything that these objects hold, without code, classes, the store, the loop and this test."""
    code = (types.ModuleType, type, types.FunctionType, types.CodeType)
    shared = (*code, Store, Core, Servers, asyncio.AbstractEventLoop, Replicas, Fleet, Notifier)
    seen: set[int] = set()
    waiting = list(roots)
    total = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, shared) or type(one).__module__ in ("uvloop.loop", "logging", "ssl"):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting.extend(gc.get_referents(one))
    return total


def held_by(session: Session) -> int:
    gc.collect()
    return reachable_bytes(session._queues, session._receiver, session.client, session.state, session.owned)


@pytest.mark.all("makes 400 queues with notifiers")
@pytest.mark.parametrize("service", [True, False])
async def test_a_session_keeps_nothing_per_subscription(fleet: Fleet, replicas: Replicas, service: bool) -> None:
    """0 bytes for those that the service covers, and 0 for the others when their batch is answered."""
    replica = await replicas.add(use_service_credentials=service, limits=SMALL)
    made = await notifiers(fleet, 400)
    held = []
    for count in (100, 400):
        await replicas.subscribe_all(made[:100] if count == 100 else made[100:], fleet.address())
        held.append(await held_after_a_reconnect(replica.sessions[0], count))
    assert abs(held[1] - held[0]) / 300 < 16, f"{held}: less than the id of each subscription"
    assert not [one for one in gc.get_objects() if isinstance(one, Subscription)]


async def held_after_a_reconnect(session: Session, count: int) -> int:
    client = session.client
    assert client is not None
    client.connection.abort()
    await until(lambda: session.client not in (None, client) and session.state.subscribed)
    await until(lambda: not session._working.locked())
    assert session.state.count == count
    samples = []
    for _ in range(10):  # the least of some: what else goes on can be reached from the session, too
        await asyncio.sleep(0.03)
        samples.append(held_by(session))
    return min(samples)


def test_the_measure_sees_what_a_session_would_keep() -> None:
    class Keeper:
        def __init__(self, count: int) -> None:
            self.kept = {n.to_bytes(24, "big"): None for n in range(count)}

    assert reachable_bytes(Keeper(600)) - reachable_bytes(Keeper(100)) > 500 * 24
