"""Redis whose memory is full: what frees memory or changes a small field works, what stores more is refused."""

import os
import random

import pytest

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import open_edge
from tests.notifier.store.test_retry import SCENARIOS
from tests.support.redis import RedisServer
from tests.support.store_edge import fill
from weir.notifier.outcome import Delivered
from weir.redis.errors import Unavailable

# Scenarios with a script that stores more than it frees. Every other one works.
REFUSED = {
    "add_server",
    "claim_notifier",
    "enrol",
    "keep_notifier",
    "readdress",
    "register",
    "replace",
    "set_credentials",
    "set_cron",
    "subscribe",
    "tell_moved",
    "unenrol",
}


async def test_what_works(any_redis: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: dict[str, str] = {}
    edge, other = await open_edge(any_redis.url), await open_edge(any_redis.url)
    try:
        for name, (_, prepare) in SCENARIOS.items():
            any_redis.flush()
            for one in (edge, other):
                one.store.leases.renew()
                one.store.core.notifiers.clear()
                one.store.servers._seen.clear()
            monkeypatch.setattr(os, "urandom", random.Random(name).randbytes)
            step = await prepare(edge, other)
            fill(any_redis, full=True)
            try:
                await step()
                outcomes[name] = "works"
            except Unavailable:
                outcomes[name] = "refused"
            fill(any_redis, full=False)
    finally:
        fill(any_redis, full=False)
        await edge.close()
        await other.close()
    assert {name for name, outcome in outcomes.items() if outcome == "refused"} == REFUSED


async def test_pushes_go_on_and_leases_are_kept(open_any: OpenEdge, any_redis: RedisServer) -> None:
    """What was received is pushed, ownership changes hands, and subscriptions come back."""
    edge, other = await open_any(), await open_any()
    token = await edge.active()
    sub = await edge.subscription(token)
    epoch = await edge.owned(sub.server_id)
    await edge.receive(sub, claim=())
    fill(any_redis, full=True)
    try:
        [push] = await other.due()
        await other.store.pushes.done(push, Delivered())
        await edge.store.servers.release(sub.server_id, epoch)
        epoch = await other.owned(sub.server_id)
        again = await other.pending(sub.server_id, epoch)
        await other.store.servers.subscribed(sub.server_id, epoch, again, b"s" * 24)
        await other.store.servers.session_up(sub.server_id, epoch)
        assert (await other.store.servers.totals(sub.server_id)).count == 1
        await edge.store.tokens.delete(token)
        assert (await other.store.servers.totals(sub.server_id)).count == 0
    finally:
        fill(any_redis, full=False)
