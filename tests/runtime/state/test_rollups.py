"""The stream of rollups in Redis: what is appended, kept and trimmed."""

import os
import time
from typing import Any

from tests.router.store.conftest import OpenEdge
from tests.router.store.harness import TestEdge
from tests.support.redis import RedisServer, client_of
from tests.support.store_edge import fill
from weir.redis.partitions import REGISTRY

KEEP = 3600.0


async def ask(edge: TestEdge, *words: bytes | int) -> Any:
    return await edge.store.core.ask(REGISTRY, *words)


async def test_records_are_appended_in_their_order(open_any: OpenEdge) -> None:
    edge = await open_any()
    records = [b"%d" % n + os.urandom(100) for n in range(70)]
    assert await edge.store.rollups.append(records, KEEP) == []
    entries = await ask(edge, b"XRANGE", b"{weir}:rollups", b"-", b"+")
    assert [fields for _, fields in entries] == [[b"r", record] for record in records]
    assert 0 < await ask(edge, b"TTL", b"{weir}:rollups") <= KEEP


async def test_what_is_older_is_trimmed(open_any: OpenEdge) -> None:
    edge = await open_any()
    old = int((time.time() - KEEP - 60) * 1000)
    for n in range(1000):
        await ask(edge, b"XADD", b"{weir}:rollups", b"%d-%d" % (old, n + 1), b"r", b"old")
    young = int((time.time() - KEEP + 600) * 1000)
    await ask(edge, b"XADD", b"{weir}:rollups", b"%d-1" % young, b"r", b"young")
    assert await edge.store.rollups.append([b"new"], KEEP) == []
    entries = await ask(edge, b"XRANGE", b"{weir}:rollups", b"-", b"+")
    left = [fields[1] for _, fields in entries]
    assert left[-2:] == [b"young", b"new"]
    assert len(left) < 200, "Redis trims whole pages, of a hundred entries"


async def test_a_redis_that_is_full_has_not_confirmed(open_any: OpenEdge, any_redis: RedisServer) -> None:
    edge = await open_any()
    fill(any_redis, full=True)
    try:
        assert await edge.store.rollups.append([b"one", b"two"], KEEP) == [b"one", b"two"]
    finally:
        fill(any_redis, full=False)
    assert await edge.store.rollups.append([b"one", b"two"], KEEP) == []
    assert await ask(edge, b"XLEN", b"{weir}:rollups") == 2


async def test_deployments_with_prefixes_have_streams_of_their_own(open_any: OpenEdge, any_redis: RedisServer) -> None:
    one, other = await open_any(), await open_any(prefix="other")
    await one.store.rollups.append([b"one"], KEEP)
    await other.store.rollups.append([b"other"], KEEP)
    found = {}
    for node in any_redis.nodes:
        with client_of(node) as client:
            for key in client.keys("*:rollups"):
                found[key] = [fields[b"r"] for _, fields in client.xrange(key)]
    assert found == {b"{weir}:rollups": [b"one"], b"{other}:rollups": [b"other"]}
