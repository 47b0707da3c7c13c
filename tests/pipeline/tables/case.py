"""Records and spans with everything that may go wrong: gaps, short intervals, days and a month that end meanwhile."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random

from tests.pipeline.tables import fleet, model
from weir.telemetry.rollups.record import Rollup

# A Sunday at the end of a month: the numbers of the week are due, and gaps reach into another month.
BEFORE_MIDNIGHT = datetime(2026, 11, 1, 23, 40, tzinfo=UTC)
SUNDAY, MONDAY = date(2026, 11, 1), date(2026, 11, 2)


class Case:
    """Records with gaps: at random, over midnight for one edge, and at the beginning of another."""

    def __init__(self) -> None:
        rng = Random(1)
        every = [
            record
            for program in ("smp", "ntf")
            for record in fleet.records(40, edges=2, start=BEFORE_MIDNIGHT, program=program)
        ]
        self.lost = [r for r in every if rng.random() < 0.1 or (r.edge == "smp11" and 15 <= r.sequence <= 25)]
        self.lost += [r for r in every if r.edge == "ntf10" and r.sequence <= 2 and r not in self.lost]
        self.trimmed = [r for r in self.lost if r.edge != "ntf11"]
        self.records = [r for r in every if r not in self.lost] + short_intervals()
        self.spans = list(traces())
        self.expected = model.tables(
            self.records, [(r.edge, r.sequence, r.sequence) for r in self.trimmed], spans=self.spans
        )


def short_intervals() -> list[Rollup]:
    """An edge that reports every ten seconds for three minutes: several records belong to one minute."""
    start = round(datetime(2026, 11, 2, 0, 5, tzinfo=UTC).timestamp() * 1000)
    return [
        Rollup(
            *("other", "smp", "short", n, start + n * 10_000, 10_000),
            commands={"PING.OK": n, "SEND.AUTH": 1},
            events={"msgSent": n},
            gauges={"connections": n, "cpu_us": 10 * n, "loop_delay_max_us": 100 - n, "fleet_queues": n},
            histograms={"redis_rtt": {n: 1, 3: 5}},
        )
        for n in range(1, 18)
    ]


def traces() -> Iterator[model.Row]:
    """Two SUBS: one with two pages, over midnight, and one that found no message. And one that is not over."""
    begin = datetime(2026, 11, 1, 23, 59, 59, 900_000, tzinfo=UTC)
    first = (("SUBS", 0, 900_000), ("takeover", 1000, 9000), ("SOKS", 10_000, 3), ("fold.page", 10_010, 30_000))
    first += (("fold.page", 300_000, 20_000), ("ALLS", 899_000, 5))
    second = (("SUBS", 0, 12_000), ("takeover", 100, 9000), ("ALLS", 11_900, 2))
    third = (("SUBS", 0, 5000), ("takeover", 100, 4000))
    for trace, steps in enumerate((first, second, third)):
        for span, (name, offset, duration) in enumerate(steps):
            row = {"trace_id": f"{trace:032x}", "span_id": f"{span:016x}", "name": name, "service": "weir"}
            yield row | {"start": begin + timedelta(microseconds=offset), "duration_us": duration}
