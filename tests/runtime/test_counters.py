from dataclasses import dataclass, field

from weir.runtime.counters import Counters


@dataclass(slots=True)
class Parts(Counters):
    ok: int = 0
    failed: int = 0


@dataclass(slots=True)
class Counted(Counters):
    sent: int = 0
    parts: Parts = field(default_factory=Parts)
    times: dict[int, int] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)  # not a counter


def test_taking_resets_and_giving_back_adds() -> None:
    counted = Counted(sent=2, parts=Parts(ok=1), times={5: 3}, seen={b"id"})
    taken = counted.take()
    assert taken == {"sent": 2, "parts_ok": 1, "times_5": 3}
    assert counted.take() == {} and counted.seen == {b"id"}
    counted.sent, counted.times[5] = 1, 1
    counted.give_back(taken)
    assert counted.take() == {"sent": 3, "parts_ok": 1, "times_5": 4}
