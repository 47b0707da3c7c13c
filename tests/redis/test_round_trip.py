"""The round trip of Redis is measured now and then, by the last command of a write."""

import asyncio

import pytest

from tests.redis.proxy import Proxy
from tests.router.store.harness import open_edge
from weir.redis.operations import Op
from weir.redis.resp import command
from weir.redis.round_trip import RoundTrip


def operation() -> Op:
    return [b"", None, None, False, 0.0]


@pytest.fixture
def measured() -> list[float]:
    return []


@pytest.fixture
def round_trip(measured: list[float]) -> RoundTrip:
    return RoundTrip(measured.append)


def test_it_ends_with_the_answer_to_the_last_command(round_trip: RoundTrip, measured: list[float]) -> None:
    first, last, later = operation(), operation(), operation()
    round_trip.ask()
    assert round_trip.due
    round_trip.begin(last)
    round_trip.check([first, last])
    round_trip.check([last, later])
    assert measured == []
    round_trip.check([later])
    assert len(measured) == 1 and measured[0] >= 0
    assert round_trip.op is None


def test_one_at_a_time(round_trip: RoundTrip) -> None:
    round_trip.ask()
    round_trip.begin(operation())
    round_trip.ask()
    assert not round_trip.due
    round_trip.drop()
    round_trip.ask()
    assert round_trip.due


async def test_a_slow_redis_is_seen(proxy: Proxy) -> None:
    edge = await open_edge(proxy.url, bytes(range(32)), deadline=10.0)
    try:
        measured: list[float] = []
        edge.store.topology.on_round_trip = measured.append
        mux = edge.store.core.muxes[0]

        async def until_measured(longest: float) -> None:
            while not measured or max(measured) < longest:
                await mux.ask(command(b"PING"))

        await until_measured(0)
        proxy.hold()
        held = []
        while not mux._round_trip.op:  # the tick asks for a measurement, and the next write begins it
            held.append(mux.ask(command(b"PING")))
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        proxy.release()
        await asyncio.gather(*held)
        await until_measured(0.3)
    finally:
        proxy.release()
        await edge.close()


async def test_a_broken_connection_is_not_measured(proxy: Proxy) -> None:
    edge = await open_edge(proxy.url, bytes(range(32)), deadline=10.0)
    try:
        mux = edge.store.core.muxes[0]
        await mux.ask(command(b"PING"))
        mux._round_trip.begin(operation())
        before = edge.restored
        proxy.cut()
        await edge.until(lambda: edge.restored > before)
        assert mux._round_trip.op is None
    finally:
        await edge.close()
