"""Inboxes: nothing is lost with a poke or a connection, nothing comes twice, and the order stays."""

import asyncio

from tests.redis.proxy import Proxy
from tests.runtime.harness import edge
from tests.support.redis import RedisServer
from weir.redis.embedded import Embedded
from weir.redis.partitions import PARTITIONS


def event(n: int) -> bytes:
    return b"event %d" % n


async def test_a_poke_brings_events_and_empties_the_inbox(any_redis: RedisServer) -> None:
    async with edge(any_redis.url, b"a") as a, edge(any_redis.url, b"b") as b:
        for n in range(100):
            await b.leave(a, n % PARTITIONS, event(n))
        await a.until(lambda: len(a.events) == 100)
        assert sorted(a.events) == sorted(map(event, range(100)))
        a.presence.inbox.drain_all()
        lengths = [await a.ask(p, b"LLEN", a.keys.inboxes[p]) for p in range(PARTITIONS)]
        assert sum(int(str(length)) for length in lengths) == 0
        assert len(a.events) == 100


async def test_one_after_the_other_in_one_inbox(any_redis: RedisServer) -> None:
    """A handled event stays until the next drain; the event after it must poke all the same."""
    async with edge(any_redis.url, b"a") as a, edge(any_redis.url, b"b") as b:
        for n in range(20):
            await b.leave(a, 5, event(n))
            await a.until(lambda n=n: len(a.events) == n + 1)  # type: ignore[misc]
            assert int(str(await a.ask(5, b"LLEN", a.keys.inboxes[5]))) <= 2
        assert a.events == list(map(event, range(20)))


async def test_more_than_a_batch_in_order(server: Embedded) -> None:
    async with edge(server.url, b"a") as a, edge(server.url, b"b") as b:
        words = [event(n) for n in range(1000)]
        await b.ask(3, b"RPUSH", a.keys.inboxes[3], *words)
        await b.poke(a, 3)
        await a.until(lambda: len(a.events) == 1000)
        assert a.events == words


async def test_a_lost_poke_costs_a_moment(server: Embedded) -> None:
    async with edge(server.url, b"a", poll=0.3) as a, edge(server.url, b"b") as b:
        await a.presence.listener.close()
        await b.leave(a, 0, event(1))
        await a.until(lambda: a.events == [event(1)])


async def test_a_lost_answer_neither_loses_nor_repeats_an_event(proxy: Proxy, server: Embedded) -> None:
    async with edge(proxy.url, b"a", poll=0.2, lease=100.0) as a, edge(server.url, b"b") as b:
        for n in range(60):
            if n % 3 < 2:
                proxy.lose_answer_to((b"LTRIM", b"LRANGE")[n % 3])
            else:
                proxy.cut()
            await b.leave(a, 9, event(n))
            await asyncio.sleep(0.02)
        await a.until(lambda: len(a.events) >= 60)
        a.presence.inbox.drain_all()
        await asyncio.sleep(0.3)
        assert a.events == list(map(event, range(60)))


async def test_an_inbox_that_redis_restored_from_the_past(server: Embedded) -> None:
    """Redis lost its last second: an event that was handled is in the inbox again and is not handled again."""
    async with edge(server.url, b"a") as a, edge(server.url, b"b") as b:
        await b.leave(a, 2, event(1))
        await a.until(lambda: bool(a.events))
        a.presence.inbox.drain_all()
        await a.ask(2, b"PING")
        await b.ask(2, b"RPUSH", a.keys.inboxes[2], event(1))
        a.topology.muxes[2].drop()
        await a.until(lambda: a.restored > 0)
        assert a.events == [event(1)]


async def test_an_inbox_with_the_node_away_is_drained_after_the_reconnect(proxy: Proxy, server: Embedded) -> None:
    async with edge(proxy.url, b"a") as a, edge(server.url, b"b") as b:
        proxy.refusing = True
        proxy.cut()
        await b.leave(a, 4, event(1))
        proxy.refusing = False
        await a.until(lambda: a.events == [event(1)])
