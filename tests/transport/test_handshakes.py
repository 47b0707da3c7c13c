"""TLS handshakes take turns, with each other and with clients that have their sessions."""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from weir.transport import handshakes as module
from weir.transport.handshakes import Handshakes


class Loop:
    """A loop whose `call_soon` and `call_later` are run by hand."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def call_soon(self, call: Callable[[], None]) -> None:
        self.calls.append((0.0, call))

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((seconds, call))

    def turn(self) -> float:
        [(seconds, call)] = self.calls
        self.calls.clear()
        self._clock[0] += seconds
        call()
        return seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    return now


def made(loop: Any, *, heard: bool) -> Handshakes:
    handshakes = Handshakes(loop)
    handshakes.heard_at = monotonic() + 3600 if heard else 0.0
    return handshakes


@pytest.mark.parametrize(("heard", "pauses"), [(False, [0, 0, 0, 0]), (True, [0, 0, 0.0012, 0])])
def test_one_a_turn_and_rest_beside_others(clock: list[float], heard: bool, pauses: list[float]) -> None:
    """The third begins when the first two, of 0.6 ms each, have been rested from."""
    loop, done = Loop(clock), list[int]()
    handshakes = made(loop, heard=heard)

    def step(number: int) -> None:
        clock[0] += 0.0006
        done.append(number)

    for number in range(4):
        handshakes.add(lambda number=number: step(number))  # type: ignore[misc]
    waited = []
    for count in range(4):
        assert done == list(range(count))
        waited.append(loop.turn())
    assert waited == pytest.approx(pauses)
    assert done == [0, 1, 2, 3] and not loop.calls
    handshakes.add(lambda: step(4))
    loop.turn()
    assert done[-1] == 4


def test_a_mistake_stops_nobody_else(clock: list[float]) -> None:
    loop, done = Loop(clock), list[str]()
    handshakes = made(loop, heard=True)

    def bad() -> None:
        raise RuntimeError("a mistake")

    handshakes.add(bad)
    handshakes.add(lambda: done.append("good"))
    with pytest.raises(RuntimeError):
        loop.turn()
    loop.turn()
    assert done == ["good"]


async def test_in_a_real_loop() -> None:
    handshakes, done = Handshakes(asyncio.get_running_loop()), list[int]()
    handshakes.heard_at = monotonic()
    all_done = asyncio.Event()
    for number in range(50):
        handshakes.add(lambda number=number: done.append(number))  # type: ignore[misc]
    handshakes.add(all_done.set)
    assert done == [], "nothing is done where it was added"
    await asyncio.wait_for(all_done.wait(), 10)
    assert done == list(range(50))
