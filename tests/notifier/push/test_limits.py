"""Gates, step by step. Each row: seconds since the start, what happens, and what the gate says afterwards."""

import pytest

from weir.notifier.push import limits
from weir.notifier.push.limits import Gate, Gates, State, retry_after

Step = tuple[float, str, State, float]

_TABLE: dict[str, list[Step]] = {
    "a server that works": [
        (0, "admit", State.CLOSED, 0),
        (0, "succeeded", State.CLOSED, 0),
    ],
    "nine failures do not open": [(0, "failed", State.CLOSED, 0)] * 9 + [(0, "succeeded", State.CLOSED, 0)] * 2,
    "a success between failures counts them from zero": [
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
        (0, "succeeded", State.CLOSED, 0),
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
    ],
    "ten failures open, a probe closes": [
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
        (0, "failed", State.OPEN, 2),
        (1, "refuse", State.OPEN, 1),
        (2, "admit", State.HALF_OPEN, 1),
        (2, "refuse", State.HALF_OPEN, 1),
        (3, "succeeded", State.CLOSED, 0),
        (3, "admit", State.CLOSED, 0),
    ],
    "failed probes double the pause": [
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
        (0, "failed", State.OPEN, 2),
        (2, "admit", State.HALF_OPEN, 1),
        (2, "failed", State.OPEN, 4),
        (6, "admit", State.HALF_OPEN, 1),
        (6, "failed", State.OPEN, 8),
        (14, "failed", State.OPEN, 16),
        (30, "failed", State.OPEN, 32),
        (62, "failed", State.OPEN, 64),
        (126, "failed", State.OPEN, 120),
        (246, "failed", State.OPEN, 120),
        (366, "succeeded", State.CLOSED, 0),
        *[(366.0, "failed", State.CLOSED, 0.0)] * 9,
        (366, "failed", State.OPEN, 2),
    ],
    "results from before a pause change nothing": [
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
        (0, "failed", State.OPEN, 2),
        (0.5, "failed", State.OPEN, 1.5),
        (1, "succeeded", State.OPEN, 1),
    ],
    "a probe without a result is over after 30 s": [
        *[(0.0, "failed", State.CLOSED, 0.0)] * 9,
        (0, "failed", State.OPEN, 2),
        (2, "admit", State.HALF_OPEN, 1),
        (31, "refuse", State.HALF_OPEN, 1),
        (32, "admit", State.HALF_OPEN, 1),
    ],
    "a wait that the server asked for": [
        (0, "wait 30", State.OPEN, 30),
        (10, "wait 10", State.OPEN, 20),
        (10, "succeeded", State.OPEN, 20),
        (30, "admit", State.HALF_OPEN, 1),
        (31, "succeeded", State.CLOSED, 0),
    ],
    "a wait for ever": [(0, "wait 1000000", State.OPEN, 3600)],
    "a wait without a time": [
        (0, "wait", State.OPEN, 2),
        (2, "wait", State.OPEN, 4),
        (6, "succeeded", State.CLOSED, 0),
    ],
}


@pytest.mark.parametrize("steps", _TABLE.values(), ids=list(_TABLE))
def test_a_gate(steps: list[Step]) -> None:
    gate = Gate()
    for row, (now, happens, state, wait) in enumerate(steps):
        match happens.split():
            case ["admit"]:
                assert gate.admit(now), row
            case ["refuse"]:
                assert not gate.admit(now), row
            case ["succeeded"]:
                gate.succeeded(now)
            case ["failed"]:
                gate.failed(now)
            case ["wait", *after]:
                gate.limited(now, float(after[0]) if after else None)
        assert (gate.state(now), gate.wait(now)) == (state, wait), row


def test_gates_of_servers_are_independent() -> None:
    gates = Gates()
    for _ in range(limits.FAILURES):
        gates.failed("a", 0)
    assert not gates.admit("a", 0)
    assert gates.admit("b", 0)
    assert (gates.wait("a", 0), gates.wait("b", 0)) == (2, 0)
    assert gates.numbers(0) == {"breaker_open": 1, "breaker_half_open": 0}
    assert gates.numbers(2) == {"breaker_open": 0, "breaker_half_open": 1}


def test_a_server_that_works_again_is_forgotten() -> None:
    gates = Gates()
    gates.failed("a", 0)
    assert len(gates) == 1
    gates.succeeded("a", 0)
    assert len(gates) == 0
    gates.succeeded("a", 0)


def test_a_success_during_a_pause_does_not_forget_it() -> None:
    gates = Gates()
    assert gates.limited("a", 0, 60.0) == 60.0
    gates.succeeded("a", 1)
    assert gates.wait("a", 1) == 59


def test_the_number_of_gates_is_bounded() -> None:
    gates = Gates(most=3)
    for server in ("a", "b", "a", "c", "d"):
        gates.limited(server, 0, 60.0)
    assert [gates.wait(server, 0) for server in "abcd"] == [60, 0, 60, 60]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        (b"120", 120.0),
        (b" 7 ", 7.0),
        (b"-1", None),
        (b"1.5", None),
        (b"9" * 50, 999_999_999.0),
        (b"soon", None),
        (b"\xb2", None),
        (b"Fri, 31 Dec 1999 23:59:59 GMT", 59.0),
        (b"Fri, 31 Dec 1999 23:58:00 GMT", 0.0),
    ],
)
def test_retry_after(value: bytes | None, seconds: float | None) -> None:
    assert retry_after(value, 946_684_740.0) == seconds
