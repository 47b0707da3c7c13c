"""Estimates of what was in use: one random key for each sketch, and nothing left of it when its period is over."""

import random
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import PLACEMENT_KEY, TestEdge
from weir.redis.partitions import REGISTRY
from weir.runtime.state.sketches import PERIODS, periods

QUEUES = [b"%024d" % n for n in range(200)]


async def ask(edge: TestEdge, *words: bytes | int) -> Any:
    return await edge.store.core.ask(REGISTRY, *words)


async def sketches(edge: TestEdge) -> dict[bytes, bytes]:
    """All that Redis has for estimates: sketches and their keys."""
    keys = sorted(key for key in await ask(edge, b"KEYS", b"*") if b":used:" in key)
    return {key: await ask(edge, b"GET", key) for key in keys}


@pytest.mark.parametrize(
    ("now", "starts", "ends"),
    [
        (datetime(2026, 11, 4, 12, tzinfo=UTC), ["11-04", "11-02", "11-01"], ["11-05", "11-09", "12-01"]),
        (datetime(2026, 12, 31, 23, 59, tzinfo=UTC), ["12-31", "12-28", "12-01"], ["01-01", "01-04", "01-01"]),
        (datetime(2028, 2, 29, 0, 0, tzinfo=UTC), ["02-29", "02-28", "02-01"], ["03-01", "03-06", "03-01"]),
    ],
)
def test_periods(now: datetime, starts: list[str], ends: list[str]) -> None:
    found = periods(now)
    assert tuple(period.name for period in found) == PERIODS
    assert [datetime.fromordinal(period.start).strftime("%m-%d") for period in found] == starts
    longer = [datetime.fromtimestamp(period.expires, UTC) - timedelta(hours=1) for period in found]
    assert [f"{end:%m-%d %H:%M}" for end in longer] == [f"{end} 00:00" for end in ends]


@given(st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1)))
def test_a_period_is_never_over_before_now(now: datetime) -> None:
    for period in periods(now.replace(tzinfo=UTC)):
        assert datetime.fromordinal(period.start) <= now
        assert period.expires > now.replace(tzinfo=UTC).timestamp() + 3600 - 1


async def test_edges_count_together(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    await a.store.stats.sketches.add({"queues": QUEUES[:150], "notifiers": []})
    await b.store.stats.sketches.add({"queues": QUEUES[100:]})
    for edge in (a, b):
        counts = await edge.store.stats.sketches.count("queues", "notifiers")
        assert {name for name, count in counts.items() if count} == {f"queues_{period}" for period in PERIODS}
        assert all(abs(counts[f"queues_{period}"] - 200) <= 10 for period in PERIODS)


async def test_key_and_sketch_expire_an_hour_after_the_period(open_any: OpenEdge) -> None:
    edge = await open_any()
    await edge.store.stats.sketches.add({"queues": QUEUES[:1]})
    present = {period.name: period for period in periods(datetime.now(UTC))}
    for key in await sketches(edge):
        name = key.removesuffix(b":key").split(b":")[-2].decode()
        now, _ = await ask(edge, b"TIME")
        assert int(now) + await ask(edge, b"TTL", key) - present[name].expires in (-1, 0, 1), key


async def test_the_same_queue_looks_different_in_every_sketch_and_deployment(open_any: OpenEdge) -> None:
    """Sketches cannot be joined: not those of periods, and not those of two routers with the same placement key."""
    found = {}
    for prefix in ("", "other"):
        edge = await open_any(prefix=prefix)
        await edge.store.stats.sketches.add({"queues": QUEUES[:1]})
        found |= await sketches(edge)
    contents = [value for key, value in found.items() if not key.endswith(b":key")]
    secrets = [value for key, value in found.items() if key.endswith(b":key")]
    assert len(contents) == len(secrets) == 6
    assert len(set(contents)) == len(set(secrets)) == 6


async def test_nothing_derives_from_the_placement_key(open_any: OpenEdge) -> None:
    """Known id, known placement key: no keyed hash of the two finds the id in a sketch whose key is gone."""
    edge = await open_any()
    await edge.store.stats.sketches.add({"queues": QUEUES[:1]})
    names = [key for key in await sketches(edge) if not key.endswith(b":key")]
    for name in names:
        content = await ask(edge, b"GET", name)
        old_name = name.replace(b":used:", b":active:")  # the name that release 0.1.0 derived its salts from
        salts = [PLACEMENT_KEY] + [blake2b(n, key=PLACEMENT_KEY, digest_size=32).digest() for n in (name, old_name)]
        for salt in salts:
            for size in (8, 32):
                guess = blake2b(QUEUES[0], key=salt, digest_size=size).digest()
                await ask(edge, b"DEL", b"{weir}:guess")
                await ask(edge, b"PFADD", b"{weir}:guess", guess)
                assert await ask(edge, b"GET", b"{weir}:guess") != content
        secret = await ask(edge, b"GET", name + b":key")
        assert len(secret) == 32
        await ask(edge, b"DEL", b"{weir}:guess")
        await ask(edge, b"PFADD", b"{weir}:guess", blake2b(QUEUES[0], key=secret, digest_size=8).digest())
        assert await ask(edge, b"GET", b"{weir}:guess") == content, "with the key, while it is there: the search works"


async def test_an_edge_forgets_the_key_of_a_period_that_is_over(open_any: OpenEdge) -> None:
    edge = await open_any()
    stats = edge.store.stats.sketches
    now = datetime.now(UTC)
    await stats.add({"queues": QUEUES[:1]})
    before = dict(stats._secrets)
    stats.now = lambda: now + timedelta(days=40)
    await stats.add({"queues": QUEUES[:1]})
    assert len(before) == len(stats._secrets) == 3
    assert not set(before.values()) & set(stats._secrets.values())
    assert not before.keys() & stats._secrets.keys()


async def test_keys_are_drawn_once_by_edges_that_begin_together(open_any: OpenEdge) -> None:
    edges = [await open_any() for _ in range(3)]
    rng = random.Random(1)
    for edge in edges:
        await edge.store.stats.sketches.add({"queues": rng.sample(QUEUES, 5)})
    assert len({tuple(sorted(edge.store.stats.sketches._secrets.items())) for edge in edges}) == 1
