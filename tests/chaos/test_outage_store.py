"""The store's reports to its edge when Redis comes back."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.redis import discard, start_server
from weir.crypto.keys import generate
from weir.redis.embedded import Embedded, start_embedded
from weir.router.store.records import EndEvent, Event, Held, HeldNtf, NewNotifier, NewQueue, Owner
from weir.router.store.store import Store, StoreConfig

LEASE = 1.5


@pytest.fixture
def server() -> Iterator[list[Embedded]]:
    servers = [start_server(appendfsync="always")]
    yield servers
    discard(servers[-1])


@pytest.fixture
async def stores(server: list[Embedded]) -> AsyncIterator[list[Store]]:
    config = StoreConfig(server[0].url, bytes(32), lease=LEASE, lease_refresh=0.3)
    opened = [await Store.open(config) for _ in range(2)]
    yield opened
    for store in opened:
        await store.close()


def new_queue(store: Store, owner: Owner) -> NewQueue:
    rcv_id, snd_id, ntf_id = store.placement.new_ids(None, True)
    assert ntf_id is not None
    key = generate("x25519").spki
    notifier = NewNotifier(ntf_id, key, bytes(32))
    return NewQueue(rcv_id, snd_id, key, bytes(32), 0, notifier=notifier, owner=owner)


async def test_restored_is_said_after_a_lost_lease_too(server: list[Embedded], stores: list[Store]) -> None:
    """Clients may have come while the lease was lost; they too may have missed something."""
    lost, restored = asyncio.Event(), asyncio.Event()
    stores[0].on_lost, stores[0].on_restored = lost.set, restored.set
    server[-1].kill()
    await lost.wait()
    assert not stores[0].leases.held
    server.append(start_embedded(server[-1].directory, appendfsync="always"))
    await restored.wait()
    assert stores[0].leases.held


async def test_a_queue_that_joined_a_service_meanwhile(stores: list[Store]) -> None:
    """The former subscriber gets END, and does not become the queue's owner again while the service owns it."""
    store, other = stores
    events: list[Event] = []
    store.on_event = events.append
    new = new_queue(store, Owner(1, 1))
    assert (await store.queues.new(new)).status.name == "OK"
    assert new.notifier is not None
    service_id, ntf_service_id = os.urandom(24), os.urandom(24)
    taken, ntf_taken = (
        await other.services.takeover(service_id, 7, 0),
        await other.services.takeover(ntf_service_id, 8, 0),
    )
    record = await other.lookups.get_rcv(new.rcv_id)
    assert record is not None
    done = asyncio.get_running_loop().create_future()
    other.subscriptions.sub(record, 7, taken.epoch, service_id, 0, 0, done.set_result)
    assert (await done).status.name == "OK"
    done = asyncio.get_running_loop().create_future()
    other.notifications.nsub(record, 8, ntf_taken.epoch, ntf_service_id, done.set_result)
    assert (await done).status.name == "OK"
    async with asyncio.timeout(5):
        while not events:
            await asyncio.sleep(0.01)
    events.clear()

    await store.subscriptions.reassert([Held(new.rcv_id, 1, 1, b"")], 0)
    await store.notifications.reassert_ntfs([HeldNtf(new.rcv_id, new.notifier.ntf_id, 1, 2)])
    assert events == [EndEvent(new.rcv_id, 1, 1), EndEvent(new.notifier.ntf_id, 1, 2)]
    owners = await store.core.ask(
        record.partition, b"HMGET", b"{%d}:q:%b" % (record.partition, new.rcv_id), b"o", b"no"
    )
    assert [owner or b"" for owner in owners] == [b"", b""]
