import pytest

from weir.surface.control import backoff
from weir.surface.control.backoff import Backoff


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the module sees."""
    now = [1000.0]
    monkeypatch.setattr(backoff, "monotonic", lambda: now[0])
    return now


def test_the_pause_doubles_up_to_a_minute(clock: list[float]) -> None:
    wrong = Backoff()
    pauses = []
    for _ in range(8):
        assert wrong.wait("192.0.2.1") == 0
        assert wrong.note_wrong("192.0.2.1") == backoff.FIRST_PAUSE
        pauses.append(wrong.wait("192.0.2.1"))
        clock[0] += pauses[-1]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_a_right_password_and_an_hour_clear_an_address(clock: list[float]) -> None:
    wrong = Backoff()
    for clear in (lambda: wrong.note_right("192.0.2.1"), lambda: clock.__setitem__(0, clock[0] + 4000.0)):
        for _ in range(5):
            wrong.note_wrong("192.0.2.1")
        assert wrong.wait("192.0.2.1") == 16
        clear()
        wrong.note_wrong("192.0.2.1")
        assert wrong.wait("192.0.2.1") == 1
        wrong.note_right("192.0.2.1")


def test_a_timer_that_ends_a_moment_early_is_no_second_pause(clock: list[float]) -> None:
    wrong = Backoff()
    wrong.note_wrong("192.0.2.1")
    clock[0] += 0.999
    assert wrong.wait("192.0.2.1") == 0


@pytest.mark.parametrize(
    ("guesses", "from_there", "elsewhere"),
    [
        ("2001:db8::1", "2001:db8::ffff", "2001:db8:0:1::1"),
        ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
        ("fe80::1%eth0", "fe80::2", "fe81::1"),
    ],
)
def test_a_network_of_ipv6_is_one_address(guesses: str, from_there: str, elsewhere: str) -> None:
    wrong = Backoff()
    wrong.note_wrong(guesses)
    assert wrong.wait(from_there) == 1 and wrong.wait(elsewhere) == 0


def test_it_remembers_a_limited_number() -> None:
    wrong = Backoff()
    for n in range(3000):
        wrong.note_wrong(f"10.0.{n // 256}.{n % 256}")
    assert len(wrong._wrong) == 1000
    assert wrong.wait("10.0.0.0") == 0 and wrong.wait("10.0.11.183") == 1
