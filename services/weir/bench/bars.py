"""`weir bench all`: runs every bench on routers that it starts itself, and compares the results with the bars.

A bar is a limit that a result must keep: a rate or fraction must not fall below it, a cost must not rise above it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from weir.bench.association import run_association
from weir.bench.connections import ConnectionsOptions, run_connections
from weir.bench.cross import CrossOptions, run_cross
from weir.bench.cycle import CycleOptions, CycleResult, floor_fractions, run_cycle
from weir.bench.fairness import fairness_keys, run_fairness
from weir.bench.floor import FloorOptions, run_floor
from weir.bench.memory import MemoryOptions, run_memory
from weir.bench.own_router import own_router
from weir.bench.report import keys
from weir.bench.rollups import run_rollups
from weir.bench.service import ServiceOptions, run_service
from weir.bench.stall import StallOptions, run_stall
from weir.bench.store import store_fill
from weir.bench.subscribe import SubscribeOptions, run_subscribe
from weir.bench.target import BenchError, Target
from weir.bench.timing import run_timing
from weir.bench.turns import run_scale, run_traces
from weir.crypto.multibuffer import VARIABLE, lanes

Show = Callable[[str, dict[str, Any]], dict[str, Any]]


def run_all(seconds: float, show: Show) -> dict[str, Any]:
    bars: dict[str, tuple[float, str, float]] = {}
    results: dict[str, Any] = {}

    def add(name: str, values: dict[str, Any]) -> None:
        results[name] = show(name, values)

    floor = run_floor(FloorOptions())
    add("floor", keys(floor))
    with own_router(1) as target:
        one = run_cycle(CycleOptions(target, seconds=seconds))
        _expect_no_errors(one)
        # Measure the floor once more: the machine may be slower or faster than a minute ago.
        nearby = (floor.cycles_per_cpu_s + run_floor(FloorOptions()).cycles_per_cpu_s) / 2
        cycle = keys(one) | floor_fractions(one, nearby)
        add("cycle", cycle)
        bars["cycles per CPU-second, edges and Redis"] = (cycle["cycles_per_cpu_s"], ">=", 1330)
        bars["edges alone, fraction of the floor"] = (cycle["edge_floor_fraction"], ">=", 0.55)
        connections = keys(run_connections(ConnectionsOptions(target)))
        add("connections", connections)
        bars["KiB per idle subscribed connection"] = (connections["rss_kib_per_connection"], "<=", 110)
        _subscribe_bars(target, lanes() > 1, add, bars)
        bars["batched SUB per CPU-second"] = (results["sub"]["subs_per_cpu_s"], ">=", 8000)
        memory = keys(run_memory(MemoryOptions(target)))
        add("memory", memory)
        bars["Redis bytes per idle queue"] = (memory["redis_bytes_per_queue"], "<=", 700)
        bars["Redis memory of a message above its size"] = (memory["message_overhead"], "<=", 0.15)
        stall = keys(run_stall(StallOptions(target)))
        add("stall", stall)
        bars["ms others wait for a block of SUBs"] = (stall["stall_p50_ms"], "<=", 3)
    if lanes() > 1:
        with own_router(1, {VARIABLE: "off"}) as target:
            _subscribe_bars(target, False, add, bars, "_without_crypto_mb")
    scale = keys(run_scale(2 * seconds))
    add("scale", scale)
    bars["two edges against one, by CPU time"] = (scale["two_edges_gain"], ">=", 1.7)
    traces = keys(run_traces(3 * seconds))
    add("traces", traces)
    bars["cost of tracing 1 % of messages"] = (traces["trace_cost"], "<=", 0.03)
    rollups = keys(run_rollups(3 * seconds))
    add("rollups", rollups)
    bars["cost of rollups, % of an edge"] = (100 * rollups["rollups_cost"], "<=", 1)
    fairness = fairness_keys(run_fairness(rounds=2))
    add("fairness", fairness)
    bars["p99 of a cycle with a hostile client at the same edge"] = (fairness["worst_same_edge_p99"], "<=", 2)
    timing = run_timing()
    add("timing", {**timing.ratios, "worst_ratio": timing.worst_ratio})
    bars["time of AUTH, existing queue against none"] = (timing.worst_ratio, "<=", 1.3)
    with own_router(2) as target:
        cross = keys(run_cross(CrossOptions(target, seconds=seconds / 2)))
        add("cross", cross)
        bars["Redis µs more for a message that crosses edges"] = (cross["cross_extra_redis_us"], "<=", 60)
        _service_bars(target, add, bars)
    results["bars"] = show_bars(bars, show)
    return results | {
        name: cycle[name]
        for name in ("cycles_per_s", "cycles_per_cpu_s", "floor_fraction", "edge_floor_fraction", "p50_ms", "p99_ms")
    }


def _subscribe_bars(
    target: Target,
    crypto_mb: bool,
    add: Callable[[str, dict[str, Any]], None],
    bars: dict[str, tuple[float, str, float]],
    suffix: str = "",
) -> None:
    """A SUB needs one X25519. Its CPU time is given in X25519s of libsodium, by which machines differ less."""
    library = "with crypto_mb" if crypto_mb else "without crypto_mb"
    plain = keys(run_subscribe(SubscribeOptions(target, queues=20000)))
    add(f"sub{suffix}", plain)
    bars[f"batched SUB in X25519s, {library}"] = (plain["sub_x25519s"], "<=", 1.3 if crypto_mb else 2.0)
    association = keys(run_association(target))
    add(f"association{suffix}", association)
    bars[f"associating SUB, fraction of plain SUB's rate, {library}"] = (association["rate_fraction"], ">=", 0.6)


def _service_bars(
    target: Target, add: Callable[[str, dict[str, Any]], None], bars: dict[str, tuple[float, str, float]]
) -> None:
    few = ServiceOptions(target, queues=1000, waiting=1000)
    fill = store_fill(target)
    small = keys(run_service(few, fill))
    add("service_1000", small)
    many = keys(run_service(replace(few, queues=1_000_000), fill))
    add("service_1000000", many)
    for name, label in (("subs_to_soks_ms", "SUBS→SOKS"), ("subs_to_alls_ms", "SUBS→ALLS")):
        bars[f"{label} at 1,000,000 queues against 1,000"] = (many[name] / small[name], "<=", 1.3)
    slow = keys(run_service(ServiceOptions(target, 100_000, 100_000, rounds=1, size=100, slow_seconds=10)))
    add("service_slow", slow)
    bars["MiB above idle, 100,000 messages to a slow client"] = (slow["edge_mib_above_idle"], "<=", 64)


def _expect_no_errors(result: CycleResult) -> None:
    if result.errors:
        raise BenchError(f"{result.errors} clients stopped after an error: {result.first_error}")


def show_bars(bars: dict[str, tuple[float, str, float]], show: Show) -> dict[str, Any]:
    """Compare measured values with their bars: by name the value, `>=` or `<=`, and the bar."""
    results: dict[str, dict[str, Any]] = {
        name: {"measured": value, "bar": f"{sign} {bar:g}", "met": value >= bar if sign == ">=" else value <= bar}
        for name, (value, sign, bar) in bars.items()
    }
    show("bars", {name: _bar(**result) for name, result in results.items()})
    return results


def _bar(measured: float, bar: str, met: bool) -> str:
    return f"{measured:>10,.2f}  {bar:>8}  {'met' if met else 'MISSED'}"
