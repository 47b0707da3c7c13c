"""Draining: the schedule by time alone, and the loop on sessions that take their time."""

import asyncio
from time import monotonic

import pytest

from weir.runtime.drain import PATIENCE, QUIET, STEP, DrainSchedule, drain


def test_the_first_step_disconnects_clients() -> None:
    schedule = DrainSchedule(rate=500, grace=30, now=0.0)
    assert schedule.due(0.0, 1000) == 25


@pytest.mark.parametrize("rate", [1, 7, 500, 20_000])
def test_the_rate_is_kept(rate: int) -> None:
    schedule = DrainSchedule(rate, grace=30, now=0.0)
    steps = int(10 / STEP)
    gone = sum(schedule.due(step * STEP, 10**9) for step in range(steps + 1))
    assert gone == pytest.approx(rate * 10, abs=rate * STEP + 1)


def test_late_steps_catch_up() -> None:
    schedule = DrainSchedule(rate=100, grace=30, now=0.0)
    schedule.due(0.0, 1000)
    assert schedule.due(2.0, 1000) == pytest.approx(200, abs=1)


def test_idle_time_is_not_saved_up() -> None:
    """With one client to disconnect in ten seconds, the next hundred must not leave at once."""
    schedule = DrainSchedule(rate=100, grace=30, now=0.0)
    assert schedule.due(10.0, 1) == 1
    assert schedule.due(10.0 + STEP, 100) <= 100 * STEP + 1


def test_the_grace_period_ends() -> None:
    schedule = DrainSchedule(rate=1, grace=30, now=100.0)
    assert not schedule.ended(129.9, sessions=1)
    assert schedule.ended(130.0, sessions=1)


def test_nobody_left_is_the_end() -> None:
    assert DrainSchedule(rate=1, grace=30, now=100.0).ended(100.0, sessions=0)


@pytest.mark.parametrize(
    ("now", "last_heard", "may_leave"),
    [
        (100.0, 99.9, False),
        (100.0, 0.0, False),  # other edges that are told to stop with this one may still accept clients
        (100.0 + QUIET, 99.9, True),
        (102.0, 101.9, False),
        (102.0, 102.0 - QUIET, True),
        (100.0 + PATIENCE, 100.0 + PATIENCE, True),
    ],
)
def test_a_session_leaves_when_it_is_quiet(now: float, last_heard: float, may_leave: bool) -> None:
    assert DrainSchedule(rate=1, grace=30, now=100.0).may_leave(now, last_heard) is may_leave


def test_a_short_grace_period_leaves_less_patience() -> None:
    assert DrainSchedule(rate=1, grace=1.0, now=100.0).may_leave(100.5, 100.5)


class Session:
    """Leaves when it has been asked `asks` times."""

    def __init__(self, present: list["Session"], asks: int, heard: float = 0.0) -> None:
        self.present = present
        self.asks = asks
        self.heard = heard
        self.draining = False
        present.append(self)

    def drain(self) -> None:
        self.draining = True
        self.asks -= 1
        if self.asks == 0:
            self.present.remove(self)


async def drained(present: list[Session], grace: float = 30) -> float:
    started = monotonic()
    await drain(lambda: present, lambda session: session.heard, rate=10_000, grace=grace)
    return monotonic() - started


async def test_every_session_is_asked_until_it_is_gone() -> None:
    present: list[Session] = []
    for asks in (1, 2, 5):
        Session(present, asks)
    await asyncio.wait_for(drained(present), 5)
    assert present == []


async def test_a_session_that_was_just_heard_stays_for_a_moment() -> None:
    present: list[Session] = []
    Session(present, 1, heard=monotonic())
    assert await asyncio.wait_for(drained(present), 5) >= QUIET * 0.9
    assert present == []


async def test_a_session_that_never_leaves_is_left_at_the_end() -> None:
    present: list[Session] = []
    Session(present, 10**9)
    assert 0.2 <= await drained(present, grace=0.2) < 2
    assert len(present) == 1
