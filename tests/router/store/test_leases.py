"""Leases: an edge that dies is vacant after its lease; one that is cut off assumes it lost, and comes back."""

import asyncio

from tests.redis.proxy import Proxy
from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import open_edge
from weir.redis.embedded import Embedded
from weir.router.store.records import MsgEvent, Owner, SendResult, Status


async def test_held_in_every_partition_and_renewed(open_any: OpenEdge) -> None:
    edge = await open_any(lease=1.0, lease_refresh=0.2)
    assert edge.store.leases.held
    await asyncio.sleep(1.3)
    left = await asyncio.gather(*(edge.store.core.ask(p, b"PTTL", keys.lease(p, edge.store.edge)) for p in range(64)))
    assert all(0 < ms <= 1000 for ms in left)
    assert edge.lost == 0


async def test_given_up_when_the_edge_closes(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    rec = await a.new(owner=Owner(1, 1))
    await a.store.leases.stop()
    assert await b.send(rec) == SendResult(Status.OK)
    assert await b.store.core.ask(rec.partition, b"EXISTS", keys.lease(rec.partition, a.store.edge)) == 0


async def test_an_edge_that_is_cut_off(proxy: Proxy, server: Embedded) -> None:
    edge = await open_edge(proxy.url, lease=1.0, lease_refresh=0.2, deadline=5.0)
    other = await open_edge(server.url)
    rec = await edge.new(owner=Owner(1, 1))
    proxy.hold()
    await edge.until(lambda: edge.lost == 1)
    assert not edge.store.leases.held
    # The edge knew before its lease ended in Redis.
    assert await other.store.core.ask(rec.partition, b"EXISTS", keys.lease(rec.partition, edge.store.edge)) == 1
    while await other.store.core.ask(rec.partition, b"EXISTS", keys.lease(rec.partition, edge.store.edge)):
        await asyncio.sleep(0.05)
    assert await other.send(rec) == SendResult(Status.OK)  # vacant: nothing is in flight
    assert (await other.sub(rec, 2, 1)).head is not None
    proxy.release()
    await edge.until(lambda: edge.restored >= 1)
    assert edge.store.leases.held
    assert edge.lost == 1
    assert (await edge.sub(rec, 3, 1)).head is not None
    await edge.close()
    await other.close()


async def test_a_short_outage_keeps_everything(proxy: Proxy, server: Embedded) -> None:
    edge = await open_edge(proxy.url, lease=10.0)
    other = await open_edge(server.url)
    rec = await edge.new(owner=Owner(1, 1))
    proxy.refusing = True
    proxy.cut()
    await other.send(rec)
    proxy.refusing = False
    await edge.until(lambda: edge.restored == 1 and bool(edge.events))
    assert edge.lost == 0
    (event,) = edge.events
    assert isinstance(event, MsgEvent)
    assert (event.conn, event.gen) == (1, 1)
    await edge.close()
    await other.close()
