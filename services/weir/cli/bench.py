"""`weir bench`: measures an SMP router and this machine."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weir.bench import report
from weir.bench.target import BenchError, Target, find_target
from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.cli.signals import sigterm_as_ctrl_c
from weir.config.options import seconds, whole
from weir.wire.versions import SMP_RANGE, max_message_length

_BENCHES = {
    "floor": "CPU time of the cryptography in one cycle on this machine: the yardstick for cycle",
    "publickey": "X25519 and Ed25519: one at a time by libsodium, and many at once",
    "cycle": "SEND → MSG → ACK between pairs of clients: rate, latency, CPU, fraction of the floor",
    "connections": "memory of an idle subscribed client; rate and CPU of handshakes",
    "sub": "a client that subscribes to many queues in batches (SUB)",
    "memory": "Redis memory of an idle queue and of a waiting message",
    "stall": "how long other clients wait while one client sends full blocks of SUBs",
    "cross": "sender and recipient on different edges, compared with the same edge",
    "service": "a service that reconnects: SUBS → SOKS → MSG … → ALLS",
    "association": "SUBs that associate queues with a service, compared with plain SUBs",
    "scale": "two edges compared with one edge",
    "traces": "an edge that traces 1 % of messages, compared with an edge without tracing",
    "rollups": "an edge that publishes rollups every second, compared with an edge that publishes none",
    "fairness": "how much a client that floods, does not read, reconnects … slows another one",
    "timing": "whether the time of an AUTH error tells if a queue or token exists",
    "ntf": "a notification router: from SEND to the push, what devices cost, subscriptions after a restart",
    "pipeline": "a day of records of many edges through weir pipeline ingest and tables",
    "all": "all benches of the SMP router, compared with the bars (docs/bench.md)",
}
_DESCRIPTION = f"""\
Measures an SMP router on this machine. One cycle is a message's way: SEND → OK, MSG → ACK → OK.

benches:
{chr(10).join(f"  {name:12} {text}" for name, text in _BENCHES.items())}

Which router is measured:
  floor, publickey             none
  pipeline                     none, and a Redis of its own
  scale, traces, rollups, fairness, timing, ntf, all
                               routers that the bench starts and removes itself
  memory, cross                a running `weir up`, named by --home
  all others                   a running `weir up` (--home), or any SMP router (--address)
A bench deletes the queues that it creates. With --home, it also removes its service; with --address, the service stays
without queues until the router forgets it.
With --home, the results include CPU and memory of the edges and of Redis. With --address, --pid adds CPU and memory of
the router's processes if they run on this machine.

How to read results: *_per_s is per second of time, *_per_cpu_s per second of the router's CPU time. A busy machine
changes the first more than the second. docs/bench.md explains every value."""


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir bench",
        _DESCRIPTION,
        """
weir bench floor
weir bench cycle --home data --clients 32 --json cycle.json
weir bench cycle --address smp://FINGERPRINT:PASSWORD@127.0.0.1:5223 --smp-version 7 --keys ed25519 --pid 4711
weir bench connections --home data --connections 5000
weir bench service --home data --queues 1000000 --waiting 1000
weir bench all --json all.json
""",
    )
    p.add_argument("bench", choices=list(_BENCHES), metavar="BENCH", help="one of the benches above")
    p.add_argument("--json", type=Path, metavar="FILE", help="also write the results to FILE")
    which = p.add_argument_group("which router")
    which.add_argument("--home", type=Path, metavar="DIR", help="home of a running `weir up`")
    which.add_argument("--address", metavar="A", help="any router: smp://FINGERPRINT[:PASSWORD]@host[:port]")
    which.add_argument(
        "--pid",
        type=whole(1, 2**22),
        action="append",
        default=[],
        metavar="P",
        help="a process of that router (repeatable)",
    )
    which.add_argument(
        "--smp-version",
        type=whole(*SMP_RANGE),
        metavar="V",
        help=f"use this protocol version, {SMP_RANGE.min} to {SMP_RANGE.max} (the highest that both support)",
    )
    load = p.add_argument_group("load")
    load.add_argument(
        "--keys", choices=["x25519", "ed25519", "ed448"], default="x25519", help="type of the queues' keys (x25519)"
    )
    load.add_argument(
        "--clients",
        type=whole(1, 100_000),
        default=32,
        metavar="N",
        help="cycle, cross: pairs of sender and recipient (32)",
    )
    load.add_argument("--seconds", type=seconds(), default=10.0, metavar="S", help="length of the measurement (10)")
    load.add_argument(
        "--size",
        type=whole(1, max_message_length(SMP_RANGE.max)),
        default=16000,
        metavar="B",
        help="size of a message in bytes (16000)",
    )
    load.add_argument(
        "--processes",
        type=whole(0, 1000),
        default=0,
        metavar="N",
        help="cycle, connections, sub: generator processes (one per core)",
    )
    load.add_argument(
        "--connections",
        type=whole(1, 1_000_000),
        metavar="N",
        help="connections: idle clients (2000); sub: connections (2)",
    )
    load.add_argument(
        "--queues",
        type=whole(1, 100_000_000),
        metavar="N",
        help="sub: queues (10000); memory, stall: 20000; association: 6000; service: 1000; ntf: 100000",
    )
    load.add_argument(
        "--waiting", type=whole(0, 100_000_000), metavar="M", help="service: queues that have a message (1000)"
    )
    load.add_argument(
        "--rounds", type=whole(1, 10_000), default=5, metavar="N", help="service, fairness: number of rounds (5)"
    )
    load.add_argument(
        "--slow", type=seconds(0), default=0.0, metavar="S", help="service: a last round, not read for S seconds (none)"
    )
    load.add_argument("--edges", type=whole(10, 100_000), default=1000, metavar="N", help="pipeline: edges (1000)")
    options = p.parse_args(argv)
    try:
        with sigterm_as_ctrl_c():
            values = _RUNNERS[options.bench](options)
    except BenchError as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise Fail(str(error)) from None
    if options.json is not None:
        try:
            report.write_json(options.json, options.bench, values)
        except OSError as error:
            raise os_error(options.json, error) from None
    return 0


def _target(options: argparse.Namespace) -> Target:
    return find_target(options.address, options.home, options.smp_version, tuple(options.pid))


def _show(title: str, values: dict[str, Any]) -> dict[str, Any]:
    print(report.table(title, values), flush=True)
    return values


def _floor(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.floor import FloorOptions, run_floor

    return _show("floor", report.keys(run_floor(FloorOptions(options.size, min(3.0, options.seconds)))))


def _public_keys(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.publickey import run_public_keys

    return _show("publickey", report.keys(run_public_keys()))


def _cycle(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.cycle import CycleOptions, floor_fractions, run_cycle
    from weir.bench.floor import FloorOptions, run_floor

    target = _target(options)
    floor = run_floor(FloorOptions(options.size, min(3.0, options.seconds)))
    result = run_cycle(
        CycleOptions(
            target,
            options.clients,
            options.seconds,
            min(2.0, options.seconds / 4),
            size=options.size,
            keys=options.keys,
            processes=options.processes,
        )
    )
    values = report.keys(result) | floor_fractions(result, floor.cycles_per_cpu_s)
    _show("cycle", values)
    if result.generator_bound:
        print("the generator is the bottleneck: add --processes, or use a machine with more cores")
    elif result.machine_fraction > 0.95:
        print("all cores are busy: the generator lowers cycles_per_s, but not cycles_per_cpu_s")
    if result.errors:
        print(f"{result.errors} clients stopped after an error; the first error: {result.first_error}")
    return values


def _connections(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.connections import ConnectionsOptions, run_connections

    result = run_connections(
        ConnectionsOptions(
            _target(options), options.connections or 2000, keys=options.keys, processes=options.processes
        )
    )
    return _show("connections", report.keys(result))


def _sub(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.subscribe import SubscribeOptions, run_subscribe

    result = run_subscribe(
        SubscribeOptions(
            _target(options),
            options.queues or 10000,
            options.connections or 2,
            keys=options.keys,
            processes=options.processes,
        )
    )
    return _show("sub", report.keys(result))


def _memory(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.memory import MemoryOptions, run_memory

    queues = options.queues or 20000
    messages = min(queues, 2000)
    result = run_memory(MemoryOptions(_target(options), queues, messages, options.size, options.keys))
    return _show("memory", report.keys(result))


def _stall(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.stall import StallOptions, run_stall

    return _show("stall", report.keys(run_stall(StallOptions(_target(options), options.queues or 20000, options.keys))))


def _cross(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.cross import CrossOptions, run_cross

    result = run_cross(
        CrossOptions(
            _target(options), min(options.clients, 16), options.seconds / 2, size=options.size, keys=options.keys
        )
    )
    return _show("cross", report.keys(result))


def _service(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.service import ServiceOptions, run_service

    queues = options.queues or 1000
    waiting = min(queues, 1000 if options.waiting is None else options.waiting)
    target, fill = _target(options), None
    if target.redis_url is not None:
        from weir.bench.store import store_fill

        fill = store_fill(target)
    result = run_service(ServiceOptions(target, queues, waiting, options.rounds, slow_seconds=options.slow), fill)
    return _show("service", report.keys(result))


def _association(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.association import run_association

    return _show("association", report.keys(run_association(_target(options), options.queues or 6000)))


def _scale(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.turns import run_scale

    return _show("scale", report.keys(run_scale(2 * options.seconds)))


def _traces(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.turns import run_traces

    return _show("traces", report.keys(run_traces(3 * options.seconds)))


def _rollups(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.bars import show_bars
    from weir.bench.rollups import run_rollups

    values = _show("rollups", report.keys(run_rollups(3 * options.seconds)))
    bars = {"cost of rollups, % of an edge": (100 * values["rollups_cost"], "<=", 1.0)}
    return values | {"bars": show_bars(bars, _show)}


def _fairness(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.fairness import fairness_keys, run_fairness

    return _show("fairness: times of a cycle beside a hostile client", fairness_keys(run_fairness(options.rounds)))


def _timing(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.timing import run_timing

    result = run_timing()
    return _show("timing", {**result.ratios, "worst_ratio": result.worst_ratio})


def _ntf(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.ntf.bars import run_ntf

    return run_ntf(options.seconds, options.queues or 100_000, _show)


def _all(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.bars import run_all

    return run_all(options.seconds, _show)


def _pipeline(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.pipeline import run_pipeline

    return run_pipeline(options.edges, _show)


_RUNNERS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "floor": _floor,
    "publickey": _public_keys,
    "cycle": _cycle,
    "connections": _connections,
    "sub": _sub,
    "memory": _memory,
    "stall": _stall,
    "cross": _cross,
    "service": _service,
    "association": _association,
    "scale": _scale,
    "traces": _traces,
    "rollups": _rollups,
    "fairness": _fairness,
    "timing": _timing,
    "ntf": _ntf,
    "pipeline": _pipeline,
    "all": _all,
}
