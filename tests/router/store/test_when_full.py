"""Redis whose memory is full: what frees memory or changes a small field works, what stores more is refused."""

import asyncio
import random
from typing import Any

from tests.router.store.conftest import OpenEdge
from tests.router.store.default_keys import keys
from tests.router.store.harness import TestEdge, open_edge
from tests.router.store.test_retry import SCENARIOS, Ids
from tests.support.redis import RedisServer, client_of
from tests.support.store_edge import fill
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.router.store.records import EndEvent, MsgEvent, Owner, Status

# Scripts that store more than they free. Every other script works.
REFUSED = {"new", "send", "secure", "set_rcv_keys", "set_link", "set_notifier", "ensure_service"}


async def attempt(step: Any) -> str:
    try:
        result = await step()
    except Unavailable:
        return "refused"
    return "refused" if result is UNAVAILABLE else "works"


async def test_what_works(any_redis: RedisServer) -> None:
    outcomes: dict[str, str] = {}
    expected: dict[str, str] = {}
    edge, other = await open_edge(any_redis.url), await open_edge(any_redis.url)
    try:
        for name, (script, prepare) in SCENARIOS.items():
            any_redis.flush()
            for one in (edge, other):
                one.store.leases.renew()
            ids = Ids(edge)
            ids._random = random.Random(name)
            step = await prepare(edge, other, ids)
            fill(any_redis, full=True)
            outcomes[name] = await attempt(step)
            expected[name] = "refused" if script in REFUSED else "works"
            fill(any_redis, full=False)
    finally:
        fill(any_redis, full=False)
        await edge.close()
        await other.close()
    assert outcomes == expected


async def test_a_body_without_its_message_is_removed(open_any: OpenEdge, any_redis: RedisServer) -> None:
    """The body still fits and fills Redis, so the message is refused: the body must not stay until it expires."""
    edge = await open_any()
    rec = await edge.new()
    for node in any_redis.nodes:
        with client_of(node) as client:
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 10_000)
    try:
        assert await edge.send(rec, body=bytes(200_000)) is UNAVAILABLE
        assert edge.store.topology.failures.counts == {"OOM": 1}
    finally:
        fill(any_redis, full=False)
    assert await _bodies(edge, rec.partition) == []
    assert (await edge.send(rec)).status is Status.OK


async def test_a_message_without_its_body_is_not_stored(open_any: OpenEdge, any_redis: RedisServer) -> None:
    """The queue was over its quota and is empty: SEND frees a field first, so Redis would let it store more."""
    edge = await open_any(quota=1)
    rec = await edge.new(owner=Owner(1, 1))
    await edge.send(rec)
    assert (await edge.send(rec)).status is Status.QUOTA
    for _ in range(2):
        await edge.ack(rec, 1, 1)
    fill(any_redis, full=True)
    try:
        assert await edge.send(rec) is UNAVAILABLE
    finally:
        fill(any_redis, full=False)
    assert (await edge.store.messages.info(rec, 0)).size == 0  # type: ignore[union-attr]
    assert (await edge.send(rec)).status is Status.OK


async def _bodies(edge: TestEdge, p: int) -> list[bytes]:
    found: list[bytes] = await edge.store.core.ask(p, b"KEYS", b"{%d}:b:*" % p)
    return found


async def test_leases_and_subscriptions_outlive_a_full_redis(open_any: OpenEdge, any_redis: RedisServer) -> None:
    """Leases are renewed, an edge can start, subscriptions change hands, and what waits is delivered."""
    edge = await open_any(lease=1.0, lease_refresh=0.2)
    rec = await edge.new(owner=Owner(1, 1))
    await edge.send(rec)
    fill(any_redis, full=True)
    try:
        for _ in range(6):  # longer than a lease
            await _renewed(edge)
        assert edge.store.leases.held and edge.lost == 0
        assert await edge.store.core.ask(5, b"PTTL", keys.lease(5, edge.store.edge)) > 500
        late = await open_any()
        sub = await late.sub(rec, 2, 2)
        assert sub.head is not None
        assert await edge.settled() == [EndEvent(rec.rcv_id, 1, 1)]
        assert (await late.ack(rec, 2, 2, sub.head.msg_id)).status is Status.OK
    finally:
        fill(any_redis, full=False)
    await edge.send(rec)
    await late.until(lambda: any(isinstance(event, MsgEvent) for event in late.events))


async def _renewed(edge: TestEdge) -> None:
    """All leases are renewed once more."""
    before = list(edge.store.leases._renewed_at)
    async with asyncio.timeout(10):
        while any(a <= b for a, b in zip(edge.store.leases._renewed_at, before, strict=True)):
            await asyncio.sleep(0.05)
