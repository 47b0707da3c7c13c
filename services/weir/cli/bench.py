"""`weir bench`: measure this machine, our router, or any other SMP router."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weir.bench import report
from weir.bench.target import BenchError, Target, find_target
from weir.cli.arguments import parser, positive
from weir.cli.errors import Fail
from weir.wire.versions import SMP_RANGE

_BENCHES = {
    "floor": "the least CPU a cycle can take on this machine",
    "cycle": "SEND→MSG→ACK: rate, latency, CPU, fraction of the floor",
    "connections": "memory of an idle subscribed client, handshakes per second",
    "sub": "batched SUB of many queues",
    "memory": "Redis' memory per idle queue and per waiting message",
    "stall": "how long others wait while one client sends blocks of SUBs",
    "cross": "ends on two edges against ends on one",
    "service": "SUBS→SOKS→ALLS of a service with many queues",
    "association": "batched SUB with a service against batched SUB without",
    "scale": "two edges against one, on routers of its own",
    "traces": "what tracing 1 % of messages costs, on routers of its own",
    "all": "everything, on a router of its own, against the bars",
}
_TABLE = "\n".join(f"  {name:12} {text}" for name, text in _BENCHES.items())


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir bench",
        f"Measures.\n\nbenches:\n{_TABLE}\n\n"
        "--home of a running `weir up` also gives CPU and memory of its edges and of Redis; --address drives any SMP\n"
        "router, and --pid gives the CPU and memory of its processes when they run on this machine.",
        """
weir bench floor
weir bench cycle --home data --clients 32 --json cycle.json
weir bench cycle --address smp://FINGERPRINT:PASSWORD@127.0.0.1:5223 --smp-version 7 --keys ed25519 --pid 4711
weir bench connections --home data --connections 5000
weir bench service --home data --queues 1000000 --waiting 1000
weir bench all --json all.json
""",
    )
    p.add_argument("bench", choices=list(_BENCHES), metavar="BENCH", help=", ".join(_BENCHES))
    p.add_argument("--home", type=Path, metavar="DIR", help="of a running `weir up`")
    p.add_argument("--address", metavar="A", help="smp://FINGERPRINT[:PASSWORD]@host[:port], any router")
    p.add_argument("--pid", type=positive, action="append", default=[], metavar="P", help="a process of that router")
    p.add_argument("--smp-version", type=int, choices=range(SMP_RANGE.min, SMP_RANGE.max + 1), metavar="V", help="6–19")
    p.add_argument("--keys", choices=["x25519", "ed25519", "ed448"], default="x25519", help="of queues (x25519)")
    p.add_argument("--clients", type=positive, default=32, metavar="N", help="cycle, cross: pairs (32)")
    p.add_argument("--seconds", type=float, default=10.0, metavar="S", help="time to measure (10)")
    p.add_argument("--size", type=positive, default=16000, metavar="B", help="bytes of a message (16000)")
    p.add_argument("--processes", type=int, default=0, metavar="N", help="of the generator (as many as cores)")
    p.add_argument("--connections", type=positive, metavar="N", help="connections: idle clients (2000); sub: 2")
    p.add_argument("--queues", type=positive, metavar="N", help="sub (10000), memory, stall (20000), service (1000)")
    p.add_argument("--waiting", type=int, metavar="M", help="service: queues with a message (1000)")
    p.add_argument("--rounds", type=positive, default=5, metavar="N", help="service: medians of so many (5)")
    p.add_argument("--slow", type=float, default=0.0, metavar="S", help="service: a last client that does not read")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the results, too (keys: docs/bench.md)")
    options = p.parse_args(argv)
    try:
        values = _RUNNERS[options.bench](options)
    except BenchError as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise Fail(str(error)) from None
    if options.json is not None:
        report.write_json(options.json, options.bench, values)
    return 0


def _target(options: argparse.Namespace) -> Target:
    return find_target(options.address, options.home, options.smp_version, tuple(options.pid))


def _show(title: str, values: dict[str, Any]) -> dict[str, Any]:
    print(report.table(title, values), flush=True)
    return values


def _floor(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.floor import FloorOptions, run_floor

    return _show("floor", report.keys(run_floor(FloorOptions(options.size, min(3.0, options.seconds)))))


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
        print("the generator is the bottleneck: give it more --processes, or more cores")
    elif result.machine_fraction > 0.95:
        print("the machine is busy: cycles_per_s is shared with the generator, cycles_per_cpu_s is the router's own")
    if result.errors:
        print(f"{result.errors} clients stopped: {result.first_error}")
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
        from weir.bench.fill import store_fill

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


def _all(options: argparse.Namespace) -> dict[str, Any]:
    from weir.bench.bars import run_all

    return run_all(options.seconds, _show)


_RUNNERS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "floor": _floor,
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
    "all": _all,
}
