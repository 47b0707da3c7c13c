"""Numbers of the fleet: what is stored, counters, and what was active in a day, a week, a month."""

import os

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import SMP2, queue


async def test_counts(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    tokens = [await edge.active() for _ in range(3)]
    for token in tokens:
        await other.subscription(token)
    sub = await edge.subscription(tokens[0], queue(SMP2))
    await edge.store.subscriptions.delete(sub)
    await edge.store.tokens.delete(tokens[1])
    await edge.store.stats.publish_edge({"clients": 1})
    counts = await other.store.stats.counts()
    assert (counts["tokens"], counts["subscriptions"], counts["servers"], counts["edges"]) == (2, 2, 2, 1)


async def test_counters_of_all_edges_add_up(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    await edge.store.stats.add_stats({"ntfReceived": 2, "tknCreated": 1})
    await other.store.stats.add_stats({"ntfReceived": 3})
    found = await edge.store.stats.read_stats()
    assert (found["ntfReceived"], found["tknCreated"]) == (5, 1)


async def test_active_tokens_and_subscriptions(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    ids = [os.urandom(24) for _ in range(20)]
    await edge.store.stats.add_active(ids[:10], ids)
    await other.store.stats.add_active(ids[5:12], ids[:3])
    counts = await edge.store.stats.counts()
    for period in ("day", "week", "month"):
        assert abs(counts[f"tokens_{period}"] - 12) <= 1  # a sketch estimates
        assert abs(counts[f"subscriptions_{period}"] - 20) <= 1
