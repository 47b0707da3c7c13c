"""Numbers of the fleet."""

import os

import pytest

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import KEY, NOW
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.partitions import REGISTRY
from weir.router.store.records import NewNotifier


async def test_counters_add_up_across_edges(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    await a.store.stats.add_stats({"msgSent": 2, "qCreated": 1, "zero": 0})
    await b.store.stats.add_stats({"msgSent": 3})
    stats = await a.store.stats.read_stats()
    assert (stats["msgSent"], stats["qCreated"]) == (5, 1)
    assert "zero" not in stats
    assert stats["fromTime"] > NOW


async def test_what_cannot_be_saved_is_added_later_and_once(open_one: OpenEdge) -> None:
    """The operation was executed and its answer lost, or it was not executed: the next call finds out."""
    edge = await open_one()
    core, stats = edge.store.core, edge.store.stats
    mux = core.muxes[REGISTRY]

    async def fail(wire: bytes, executed: bool) -> None:
        if executed:
            await ask(wire, script=True)
        raise UNAVAILABLE

    ask = mux.ask
    for number, executed in enumerate((True, False), 1):
        mux.ask = lambda wire, script, executed=executed: fail(wire, executed)  # type: ignore[assignment,misc,return-value]
        core.unsaved.messages = 3
        with pytest.raises(Unavailable):
            await stats.add_stats({"msgSent": 2})
        with pytest.raises(Unavailable):
            await stats.add_stats({"msgSent": 1})
        mux.ask = ask  # type: ignore[method-assign]
        await stats.add_stats({"msgSent": 4})
        found = await stats.read_stats()
        assert (found["msgSent"], found["messages"]) == (7 * number, 3 * number)


async def test_edges_without_a_lease_are_not_shown(open_any: OpenEdge) -> None:
    edges = [await open_any() for _ in range(3)]
    for edge in edges:
        await edge.store.stats.publish_edge({"clients": 1})
    stats = edges[0].store.stats
    assert len(await stats.read_edges()) == 3
    await edges[1].store.leases.stop()  # as an edge that stops
    assert (await stats.read_edges()).keys() == {edges[n].store.edge.decode() for n in (0, 2)}
    edges[1].store.leases.renew()  # as an edge that comes back
    await edges[1].store.stats.publish_edge({"clients": 1})
    assert len(await stats.read_edges()) == 3


async def test_what_is_stored(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    recs = [await a.new(ntf=n % 2 == 0) for n in range(10)]
    for rec in recs:
        await b.send(rec)
    await b.store.stats.add_stats({})
    await a.store.stats.publish_edge({"clients": 3})
    await b.store.stats.publish_edge({"clients": 4})
    counts = await a.store.stats.counts()
    assert {name: counts[name] for name in ("queues", "notifiers", "messages", "services", "edges")} == {
        "queues": 10,
        "notifiers": 5,
        "messages": 10,
        "services": 0,
        "edges": 2,
    }
    assert await a.store.stats.read_edges() == {
        a.store.edge.decode(): {"clients": 3},
        b.store.edge.decode(): {"clients": 4},
    }
    await a.sub(recs[0], 1, 1)
    await a.ack(recs[0], 1, 1)
    await a.store.queues.delete(recs[1], 1)
    assert (await a.store.stats.counts())["messages"] == 8


async def test_notifications_that_wait(open_any: OpenEdge) -> None:
    a, b = await open_any(ntf_limit=3), await open_any(ntf_limit=3)
    taken, deleted, changed, ended = [await a.new(ntf=True) for _ in range(4)]
    for rec in (taken, deleted, changed, ended):
        for _ in range(4):
            await b.send(rec, ntf=True)
    await b.send(await a.new(ntf=True))  # without a notification

    async def waiting() -> int:
        await b.store.stats.add_stats({})
        return (await a.store.stats.counts())["notifications"]

    assert await waiting() == 12  # beyond the limit the oldest went
    await b.nsub(taken, 1, 1)
    items = await b.take(taken, 1, 1)
    assert await waiting() == 12  # given, not done
    await b.take(taken, 1, 1, items[1].nonce)
    assert await waiting() == 10
    await b.store.queues.delete(deleted, 1)
    await b.store.notifications.delete_notifier(ended, 1)
    assert await waiting() == 4
    await b.store.notifications.set_notifier(
        changed, NewNotifier(b.store.placement.draw(changed.partition), KEY, b"s" * 32), 1
    )
    assert await waiting() == 1


async def test_active_queues(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    ids = [os.urandom(24) for _ in range(600)]
    await a.store.stats.add_active(set(ids[:400]), ids[:10])
    await b.store.stats.add_active(ids[200:], [])
    counts = await a.store.stats.counts()
    for period in ("day", "week", "month"):
        assert abs(counts[f"queues_{period}"] - 600) < 30
        assert abs(counts[f"notifiers_{period}"] - 10) <= 1  # two of ten share a register of the sketch now and then


async def test_redis_as_the_edge_sees_it(open_any: OpenEdge) -> None:
    edge = await open_any()
    info = await edge.store.stats.redis_info()
    assert info["up"] == 1
    assert info["memory_used_bytes"] > 0
    assert info["keys"] > 60
