"""Several deployments on one Redis: two SMP and two NTF routers see nothing of each other."""

import asyncio
from typing import Any

from tests.notifier.store.harness import APNS, SMP1, NtfEdge
from tests.notifier.store.harness import open_edge as open_ntf
from tests.router.store.harness import PLACEMENT_KEY, TestEdge
from tests.router.store.harness import open_edge as open_smp
from tests.support.redis import RedisServer, client_of
from weir.notifier.outcome import Delivered
from weir.notifier.store.records import SubscribeEvent
from weir.redis.partitions import Partitions
from weir.router.store.records import EndEvent, Owner


async def test_deployments_on_one_redis(any_redis: RedisServer) -> None:
    smps = [await open_smp(any_redis.url, PLACEMENT_KEY, prefix=prefix) for prefix in ("", "smp-2")]
    ntfs = [await open_ntf(any_redis.url, prefix=prefix) for prefix in ("ntf", "ntf-2")]
    edges: list[Any] = [*smps, *ntfs]
    try:
        await asyncio.gather(*(_use_smp(edge) for edge in smps), *(_use_ntf(edge) for edge in ntfs))
        for edge in edges:
            await edge.store.stats.publish_edge({"clients": 1})
        for edge in edges:
            counts = await edge.store.stats.counts()
            assert counts["edges"] == 1
            assert (counts["queues"] if edge in smps else counts["tokens"]) == 1
            others = await edge.store.broadcast.ask(5.0, do="nothing")
            assert set(others.by_edge) == {edge.store.edge.decode()} and not others.missing
        for edge in edges:
            cursor, swept = 0, []
            while True:
                found = await edge.store.sweeper.sweep_slice(cursor)
                assert found is not None, "each deployment has a lock of its own"
                swept.append(found)
                cursor = found.cursor
                if cursor == 0:
                    break
            assert sum(each.damaged for each in swept) == 0
        _check_keys(any_redis, edges)
    finally:
        for edge in edges:
            await edge.close()


async def _use_smp(edge: TestEdge) -> None:
    rec = await edge.new(owner=Owner(1, 1))
    await edge.send(rec)
    await edge.sub(rec, 2, 2)
    assert await edge.settled() == [EndEvent(rec.rcv_id, 1, 1)]


async def _use_ntf(edge: NtfEdge) -> None:
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    sub = await edge.subscription(await edge.active())
    await edge.until(lambda: bool(edge.events))  # the poke came on this deployment's channel
    assert edge.events == [SubscribeEvent(server_id, epoch, sub.id)]
    push = (await edge.receive(sub, claim=(APNS,))).push
    assert push is not None
    await edge.store.pushes.done(push, Delivered())


def _check_keys(server: RedisServer, edges: list[Any]) -> None:
    tags = [edge.store.topology.partitions.tags for edge in edges]
    used = [0] * len(edges)
    for node in server.nodes:
        with client_of(node) as client:
            for key in client.keys("*"):
                tag = key[: key.index(b"}") + 1]
                [place] = [n for n, each in enumerate(tags) if tag in each]
                used[place] += 1
    assert all(used)
    assert tags[0] == Partitions().tags, "an SMP router without a prefix has the keys that it always had"
