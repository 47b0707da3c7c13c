"""Leases: renewed in every partition, given up at the end, and counted as lost before Redis drops them."""

import asyncio

from tests.redis.proxy import Proxy
from tests.runtime.harness import edge
from tests.support.redis import RedisServer
from weir.redis.embedded import Embedded
from weir.redis.failures import TIMEOUT
from weir.redis.partitions import PARTITIONS


async def test_held_in_every_partition_and_renewed(any_redis: RedisServer) -> None:
    async with edge(any_redis.url, b"a", lease=1.0, refresh=0.2) as a:
        assert a.presence.leases.held
        await asyncio.sleep(1.3)
        left = [await a.ask(p, b"PTTL", a.keys.leases[p]) for p in range(PARTITIONS)]
        assert all(isinstance(ms, int) and 0 < ms <= 1000 for ms in left), left
        assert a.lost == 0


async def test_given_up_at_the_end_with_the_inbox(any_redis: RedisServer) -> None:
    async with edge(any_redis.url, b"b") as b:
        async with edge(any_redis.url, b"a") as a:
            await b.leave(a, 7, b"event")
        assert [await b.ask(p, b"EXISTS", a.keys.leases[p]) for p in range(PARTITIONS)] == [0] * PARTITIONS
        assert await b.ask(7, b"EXISTS", a.keys.inboxes[7]) == 0


async def test_an_edge_that_is_cut_off_gives_up_first(proxy: Proxy, server: Embedded) -> None:
    async with edge(server.url, b"b") as b, edge(proxy.url, b"a", lease=1.0, refresh=0.2) as a:
        proxy.hold()
        await a.until(lambda: a.lost == 1)
        assert not a.presence.leases.held
        assert await b.ask(0, b"EXISTS", a.keys.leases[0]) == 1, "Redis still has the lease"
        proxy.release()
        await a.until(lambda: a.restored >= 1)
        assert a.presence.leases.held
        assert a.lost == 1


async def test_a_short_outage_loses_no_lease(proxy: Proxy, server: Embedded) -> None:
    async with edge(proxy.url, b"a") as a:
        proxy.refusing = True
        proxy.cut()
        await asyncio.sleep(0.2)
        proxy.refusing = False
        await a.until(lambda: a.restored == 1)
        assert (a.lost, a.presence.leases.held) == (0, True)


async def test_a_lease_that_redis_drops_is_taken_again_and_reported(any_redis: RedisServer) -> None:
    """As after a forward step of Redis' clock."""
    async with edge(any_redis.url, b"b") as b, edge(any_redis.url, b"a", lease=1.0, refresh=0.2) as a:
        await b.ask(7, b"UNLINK", a.keys.leases[7])
        await a.until(lambda: a.lapsed == 1)
        assert await b.ask(7, b"EXISTS", a.keys.leases[7]) == 1
        assert a.restored == 0, "other edges renew their leases first"
        await a.until(lambda: a.restored == 1)
        assert (a.lost, a.lapsed) == (0, 1)


async def test_a_lapse_is_noticed_though_the_answer_is_lost(proxy: Proxy, server: Embedded) -> None:
    async with edge(server.url, b"b") as b, edge(proxy.url, b"a", lease=2.0, refresh=0.2) as a:
        proxy.lose_answer_to(b"EVAL")
        await b.ask(7, b"UNLINK", a.keys.leases[7])
        await a.until(lambda: a.lapsed == 1)
        assert proxy.lost == 1


async def test_an_inbox_that_was_deleted_in_a_lapse(redis_server: RedisServer) -> None:
    """The edge removes nothing from the new inbox that it had handled in the old one."""
    async with edge(redis_server.url, b"b") as b, edge(redis_server.url, b"a", lease=1.0, refresh=0.2) as a:
        await b.leave(a, 7, b"handled")
        await a.until(lambda: a.events == [b"handled"])
        await b.ask(7, b"UNLINK", a.keys.leases[7], a.keys.inboxes[7])
        await a.until(lambda: a.lapsed == 1)
        await b.leave(a, 7, b"new")
        await a.until(lambda: a.events == [b"handled", b"new"])


async def test_catching_up_is_repeated_until_redis_answers(proxy: Proxy) -> None:
    """Redis answers too late after a reconnect: the edge must not stay without what it missed."""
    async with edge(proxy.url, b"a", deadline=0.3) as a:
        proxy.hold()
        a.presence.reconnected()
        async with asyncio.timeout(10):
            while a.topology.failures.counts.get(TIMEOUT, 0) <= 2 * PARTITIONS:  # renewals, inboxes, and then PING
                await asyncio.sleep(0.05)
        assert a.restored == 0
        proxy.release()
        await a.until(lambda: a.restored == 1)


async def test_a_renewal_that_is_answered_late_counts(proxy: Proxy) -> None:
    """The answer comes after the deadline of commands. Redis has renewed the lease all the same."""
    async with edge(proxy.url, b"a", lease=100.0, refresh=1000.0, deadline=0.3) as a:
        leases = a.presence.leases
        before = max(leases._renewed_at)
        proxy.hold()
        leases.renew()
        async with asyncio.timeout(10):
            while a.topology.failures.counts.get(TIMEOUT, 0) < PARTITIONS:
                await asyncio.sleep(0.05)
        proxy.release()
        await a.ask(0, b"PING")
        assert min(leases._renewed_at) > before
