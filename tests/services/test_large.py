"""TG-SVC-07 and R-SVC-01: a service of 100,000 queues comes back as one of a hundred does."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, router_config
from tests.services.service import Service, messages
from weir.client.smp import Request
from weir.redis.embedded import Embedded
from weir.router.store.bulk import bulk_queues
from weir.router.store.records import Owner
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import ENDS, OK

LARGE, SMALL, WAITING = 100_000, 200, 150
NOBODY = 1 << 40  # a connection that no client has


@pytest.fixture
async def roomy(redis: Embedded, identity: Path, tmp_path: Path) -> AsyncIterator[Fleet]:
    """Two edges on a database that is emptied afterwards."""
    fleet = Fleet(router_config(f"{redis.url}?db=3", identity, tmp_path))
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet[0].store.core.ask(0, b"FLUSHDB")
    await fleet.close()


async def fill(fleet: Fleet, service: Service, count: int) -> list[bytes]:
    """Puts queues into the store; the sender ids of those that get a message."""
    session = await service.connect(fleet)
    service_id = session.service_id
    await session.close()
    store = fleet[0].store
    taken = await store.services.takeover(service_id, NOBODY, 0)
    senders = []
    owner = Owner(NOBODY, taken.epoch)
    async for rcv_id, snd_id, _ in bulk_queues(store.core, count, day=0, owner=owner, service=service_id):
        service.ids.add(rcv_id)
        if len(senders) < WAITING:
            senders.append(snd_id)
    await store.services.release_service(service_id, NOBODY, taken.epoch)
    return senders


async def calls_of_a_fold(fleet: Fleet, service: Service, senders: list[bytes]) -> Counter[str]:
    """Redis calls from SUBS to ALLS, with a message in each of some queues."""
    sender = await fleet.client(1)
    replies = await sender.smp.send_many([Request(cmd.SEND(False, b"m"), snd_id) for snd_id in senders])
    assert replies == [OK()] * len(senders)
    await sender.close()
    session = await service.connect(fleet)
    store, calls = fleet[0].store, Counter[str]()
    real_call, real_body = store.core.call, store.messages.body

    def call(p: int, name: str, *rest: object) -> object:
        calls[name] += 1
        return real_call(p, name, *rest)  # type: ignore[arg-type]

    def body(*args: object) -> None:
        calls["body"] += 1
        real_body(*args)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.core, "call", call)
        patch.setattr(store.messages, "body", body)
        given = messages(await session.resume())
    assert len(given) == len(senders)
    await session.close()
    return calls


@pytest.mark.timeout(180)
async def test_tg_svc_07_a_hundred_thousand_queues(roomy: Fleet) -> None:
    service = Service()
    senders = await fill(roomy, service, LARGE)
    assert len(service.ids) == LARGE
    sender = await roomy.client(1)
    replies = await sender.smp.send_many([Request(cmd.SEND(False, b"m"), snd_id) for snd_id in senders])
    assert replies == [OK()] * WAITING
    first = await service.connect(roomy)
    given = messages(await first.resume())
    assert len(given) == WAITING and set(given) <= service.ids
    second = await service.connect(roomy, 1)
    assert messages(await second.resume()) == given, "the same messages, for they were not acknowledged"
    assert (await first.event()).reply == ENDS(*service.totals)


async def test_r_svc_01_the_fold_does_not_scan(roomy: Fleet) -> None:
    """A fold's calls of Redis depend on the messages that wait, not on the queues, nor on others' messages."""
    small, large, other = Service(), Service(), Service()
    few = await fill(roomy, small, SMALL)
    many = await fill(roomy, large, 50 * SMALL)
    foreign = await fill(roomy, other, SMALL)
    sender = await roomy.client(1)
    for _ in range(3):
        await sender.smp.send_many([Request(cmd.SEND(False, b"m"), snd_id) for snd_id in foreign])
    least = await calls_of_a_fold(roomy, small, few)
    most = await calls_of_a_fold(roomy, large, many)
    for calls in (least, most):
        assert (calls["claim"], calls["takeover"]) == (1, 64), "SUBS → SOKS: the same for any number of queues"
        assert calls["body"] == WAITING
        assert calls["fold_page"] <= 64 + WAITING, "pages of the ready sets, not of the queues"
    assert abs(least["fold_page"] - most["fold_page"]) <= 16
