"""The writer of rollups: sequence numbers, intervals, and a Redis that is away, full or loses answers.

The program here counts one thing. What the routers bring is tested with them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from tests.redis.proxy import Proxy
from tests.router.store.harness import TestEdge, open_edge
from tests.support.redis import client_of
from tests.support.rollups import Sums, raw_records, records, sequences, until_records
from weir.redis.embedded import Embedded
from weir.redis.errors import Unavailable
from weir.runtime import rollups as runtime_rollups
from weir.runtime.rollups import Rollups
from weir.runtime.settings import Rollups as Settings
from weir.runtime.supervisor import Supervisor
from weir.runtime.totals import Totals
from weir.telemetry.rollups.record import Rollup, ServiceRollup

SETTINGS = Settings(interval=0.25, keep=3600.0, router="test")  # shorter than a configuration may say


class Counting:
    """A program that counts what the test says."""

    program = "smp"

    def __init__(self) -> None:
        self.sent = 0
        self.events: dict[str, int] = {}
        self.fleet: dict[str, int] | None = {"fleet_queues": 5}

    def totals(self) -> Totals:
        return Totals({"SEND.OK": self.sent}, {"msgSent": self.sent, **self.events}, {"send_stored": {80: self.sent}})

    def gauges(self) -> dict[str, int]:
        return {"connections": 3}

    def take_services(self) -> tuple[ServiceRollup, ...]:
        return ()

    async def refresh(self) -> dict[str, int]:
        if self.fleet is None:
            raise Unavailable
        return self.fleet


class Written:
    """A writer on a Redis behind a proxy."""

    def __init__(self, edge: TestEdge, server: Embedded) -> None:
        self.program = Counting()
        self.background = Supervisor()
        self.rollups = Rollups(SETTINGS, "0123456789ab", edge.store.rollups, self.program)  # type: ignore[arg-type]
        self._url = server.url

    def start(self) -> None:
        self.rollups.start(self.background)

    async def until(self, count: int) -> list[Rollup]:
        return await until_records(self._url, lambda found: len(found) >= count)

    async def recorded(self, count: int) -> None:
        """Wait for records that Redis cannot have."""
        async with asyncio.timeout(30):
            while self.rollups.pending < count:
                await asyncio.sleep(0.05)

    async def stop(self) -> list[Rollup]:
        await self.background.close()
        await self.rollups.close()
        return records(self._url)


@pytest.fixture
async def written(proxy: Proxy, server: Embedded) -> AsyncIterator[Written]:
    with client_of(server) as client:
        client.flushall()
    edge = await open_edge(proxy.url, bytes(range(32)), deadline=1.0)
    written = Written(edge, server)
    yield written
    proxy.refusing = False
    proxy.release()
    await written.background.close()
    await edge.close()


async def test_each_record_has_the_increase_since_the_last(written: Written) -> None:
    written.program.sent = 7
    written.start()
    await written.until(1)
    written.program.sent = 10
    first = await written.until(2)
    written.program.sent = 15
    found = await written.stop()
    assert found[: len(first)] == first
    sums = Sums(found)
    assert sums.commands == {"SEND.OK": 15}
    assert sums.events == {"msgSent": 15}
    assert sums.histograms == {"send_stored": {80: 15}}
    assert found[0].commands == {"SEND.OK": 7}
    assert found[-1].commands.get("SEND.OK") == 5, "a clean stop publishes the last part"
    assert sequences(found) == {"0123456789ab": list(range(1, len(found) + 1))}
    assert {(r.router, r.program) for r in found} == {("test", "smp")}
    assert all(r.gauges["connections"] == 3 and r.gauges["cpu_us"] > 0 for r in found)


async def test_intervals_end_at_whole_multiples(written: Written) -> None:
    """A record never begins before its interval, however early a timer is: its minute would be the one before."""
    written.start()
    found = await written.until(4)
    intervals = [record.start // 250 for record in found]
    assert intervals == sorted(set(intervals))
    for one, following in pairwise(found):
        assert abs(one.start + one.duration - following.start) <= 500, "nothing between, even on a busy machine"


async def test_a_busy_event_loop_is_seen(written: Written) -> None:
    written.start()
    before = len(await written.until(1))
    time.sleep(0.3)  # longer than the event loop may be late without being seen
    found = await written.until(before + 2)
    assert max(record.gauges.get("loop_delay_max_us", 0) for record in found[before:]) >= 150_000


async def test_numbers_of_the_fleet_are_those_of_the_last_refresh(written: Written) -> None:
    written.start()
    await until_records(written._url, lambda found: any(r.gauges.get("fleet_queues") == 5 for r in found))
    written.program.fleet = None
    await until_records(written._url, lambda found: "fleet_queues" not in found[-1].gauges)


async def test_a_redis_that_was_away_gets_every_record(written: Written, proxy: Proxy) -> None:
    written.start()
    written.program.sent = 3
    await written.until(1)
    proxy.refusing = True
    proxy.cut()
    written.program.sent = 10
    await written.recorded(2)
    proxy.refusing = False
    assert await until_sent(written, 10)
    written.program.sent = 12
    found = await written.stop()
    assert Sums(found).commands == {"SEND.OK": 12}
    [numbers] = sequences(found).values()
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def until_sent(written: Written, count: int) -> list[Rollup]:
    def enough(found: list[Rollup]) -> bool:
        return Sums(found).commands.get("SEND.OK", 0) >= count

    return await until_records(written._url, enough)


async def test_a_redis_that_was_full_gets_every_record(written: Written, server: Embedded) -> None:
    written.start()
    await written.until(1)
    with client_of(server) as client:
        client.config_set("maxmemory", "1")
        try:
            written.program.sent = 4
            await written.recorded(2)
        finally:
            client.config_set("maxmemory", "0")
    await until_sent(written, 4)
    found = await written.stop()
    [numbers] = sequences(found).values()
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def test_a_record_that_is_sent_twice_is_the_same_twice(written: Written, proxy: Proxy, server: Embedded) -> None:
    written.start()
    written.program.sent = 3
    proxy.lose_answer_to(b"XADD")
    await until_sent(written, 3)
    found = await written.stop()
    raw = raw_records(server.url)
    assert proxy.lost == 1
    assert len(raw) > len(found), "the lost answer was that of one record or, on a busy machine, of several"
    assert len(set(raw)) == len(found)
    assert Sums(found).commands == {"SEND.OK": 3}


async def test_the_oldest_records_are_dropped_and_leave_a_gap(
    written: Written, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime_rollups, "MOST_PENDING", 2)
    written.rollups._pending = type(written.rollups._pending)(maxlen=2)
    written.start()
    await written.until(1)
    last = written.rollups._sequence
    proxy.refusing = True
    proxy.cut()
    async with asyncio.timeout(30):
        while written.rollups._sequence < last + 5:
            await asyncio.sleep(0.05)
            assert written.rollups.pending <= 2
    proxy.refusing = False
    await until_records(written._url, lambda found: found[-1].sequence > last)
    found = await written.stop()
    numbers = {record.sequence for record in found}
    assert max(numbers) == len(numbers) + len(set(range(1, max(numbers))) - numbers)
    assert set(range(1, max(numbers))) - numbers, "a gap that a reader sees"


async def test_an_edge_that_stops_does_not_wait_for_a_redis_that_is_away(written: Written, proxy: Proxy) -> None:
    written.start()
    await written.until(1)
    proxy.refusing = True
    proxy.cut()
    async with asyncio.timeout(10):
        await written.stop()


async def test_an_edge_that_stops_does_not_wait_long_for_a_redis_that_hangs(written: Written, proxy: Proxy) -> None:
    written.start()
    await written.until(1)
    proxy.hold()
    async with asyncio.timeout(10):
        await written.background.close()
        await written.rollups.close()


async def test_a_mistake_costs_one_record(written: Written, caplog: Any) -> None:
    """A counter that is not declared: the record is not made, the gap shows it, and the log names no counter."""
    written.start()
    await written.until(1)
    last = written.rollups._sequence
    written.program.events = {"a-queue-id": 1}
    async with asyncio.timeout(30):
        while "failed and starts again" not in caplog.text:
            await asyncio.sleep(0.05)
    written.program.events = {}
    found = await until_records(written._url, lambda found: found[-1].sequence > last + 1)
    numbers = {record.sequence for record in found}
    assert set(range(1, max(numbers))) - numbers
    assert "the rollups failed and starts again in 1 s (ValueError" in caplog.text
    assert "a-queue-id" not in caplog.text


async def test_a_mistake_does_not_keep_an_edge_from_closing(written: Written, caplog: Any) -> None:
    written.start()
    before = len(await written.until(1))
    written.program.events = {"a-queue-id": 1}
    assert len(await written.stop()) >= before
    assert "the last rollup could not be made (ValueError" in caplog.text


async def test_nothing_runs_when_rollups_are_off(proxy: Proxy) -> None:
    edge = await open_edge(proxy.url, bytes(range(32)))
    try:
        background = Supervisor()
        program = Counting()
        rollups = Rollups(Settings(interval=0.0), "0123456789ab", edge.store.rollups, program)  # type: ignore[arg-type]
        rollups.start(background)
        assert not background._tasks
        await rollups.close()
        assert rollups.pending == 0
    finally:
        await edge.close()
