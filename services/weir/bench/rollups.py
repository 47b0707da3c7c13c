"""`weir bench rollups`: what rollups cost an edge.

Two parts are measured. An edge counts all the time, whether it publishes or not: what one cycle counts is timed in a
loop of its own, because a thousandth of a cycle is less than two runs of an edge differ by. An edge that publishes
every second is compared by turns with one that does not publish: the difference is sixty times that of a record a
minute.
"""

from dataclasses import dataclass
from statistics import median
from time import process_time, time

from weir.bench.cycle import CycleOptions
from weir.bench.own_router import own_router
from weir.bench.turns import cycles_by_turns
from weir.router.stats import Stats
from weir.runtime.answers import Answers
from weir.wire.smp.commands import ACK, DECLARATIONS, SEND

_CLIENTS = 32
_LOOPS, _ROUNDS = 20_000, 9
_INTERVAL = 60  # seconds, by default
_SETTING = "WEIR_ROLLUPS_INTERVAL"
_TOOK = 0.002  # seconds: a value that a histogram counts, so that its logarithm is taken


@dataclass(frozen=True)
class RollupsResult:
    off_edge_us: float  # CPU per cycle of an edge that publishes nothing
    second_edge_us: float  # … that publishes a record every second
    second_cost: float  # the part of the second that is more
    counting_us: float  # what the counters and histograms of one cycle take
    rollups_cost: float  # fraction of an edge's CPU for counting, and for a record a minute


def run_rollups(seconds: float, rounds: int = 9, clients: int = _CLIENTS) -> RollupsResult:
    with own_router(1, {_SETTING: "0"}) as off, own_router(1, {_SETTING: "1s"}) as on:
        without, every_second = cycles_by_turns(
            CycleOptions(off, clients, seconds / rounds, 0.5),
            CycleOptions(on, clients, seconds / rounds, 0.5),
            rounds,
        )
    counting = counting_us()
    more = every_second / without - 1
    return RollupsResult(without, every_second, more, counting, counting / without + max(more, 0.0) / _INTERVAL)


def counting_us(loops: int = _LOOPS) -> float:
    """The CPU time of all that is counted for rollups alone in one cycle, SEND → MSG → ACK, in µs."""
    rounds = []
    for _ in range(_ROUNDS):
        stats, answers = Stats(), Answers(DECLARATIONS)
        began = process_time()
        for _ in range(loops):
            pass
        empty = process_time() - began
        began = process_time()
        for _ in range(loops):
            came = time() - _TOOK
            now = time()
            stats.send_stored.observe((now - came) * 1e6)
            answers.by_command[SEND] += 1
            stats.send_msg.observe((now - came) * 1e6)
            stats.msg_ack.observe((now - came) * 1e6)
            answers.by_command[ACK] += 1
        rounds.append(process_time() - began - empty)
    return median(rounds) / loops * 1e6
