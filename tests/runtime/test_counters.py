from dataclasses import dataclass, field

from weir.runtime.counters import Counters, increase


@dataclass(slots=True)
class Parts(Counters):
    ok: int = 0
    failed: int = 0


@dataclass(slots=True)
class Counted(Counters):
    sent: int = 0
    parts: Parts = field(default_factory=Parts)
    times: dict[int, int] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)  # a field of another type


def test_totals_have_parts_and_buckets_and_no_zeros() -> None:
    counted = Counted(sent=2, parts=Parts(ok=1), times={5: 3}, seen={b"id"})
    assert counted.totals() == {"sent": 2, "parts_ok": 1, "times_5": 3}
    assert counted.totals() == {"sent": 2, "parts_ok": 1, "times_5": 3}, "reading them changes nothing"


def test_the_increase_between_two_totals() -> None:
    counted = Counted(sent=2, times={5: 3})
    before = counted.totals()
    assert increase({}, before) == before
    assert increase(before, before) == {}
    counted.sent, counted.times[9] = 5, 1
    assert increase(before, counted.totals()) == {"sent": 3, "times_9": 1}
