"""`weir bench scale` and `weir bench traces`: comparisons of two sides by turns.

The speed of a busy machine changes within minutes, by more than the difference that these benches look for. So they
measure short runs of one side and the other by turns, and compare the medians.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import mean, median

from weir.bench.cycle import CycleOptions, CycleResult, run_cycle
from weir.bench.own_router import own_router
from weir.bench.target import BenchError

_CLIENTS = 32
_RATIO = 0.01


@dataclass(frozen=True)
class ScaleResult:
    """CPU per cycle of a single edge, and of two edges that share clients and Redis.

    With two edges, about half of the pairs have their sender and their recipient on different edges.
    """

    one_edge_us: float
    two_edges_us: float
    two_edges_gain: float  # capacity of two edges divided by that of one: 2 × one_edge_us / two_edges_us


@dataclass(frozen=True)
class TracesResult:
    untraced_edge_us: float
    traced_edge_us: float
    trace_cost: float  # fraction of throughput lost, computed from the CPU time of the edges
    exports: int  # requests that the collector received


def run_scale(seconds: float, rounds: int = 5, clients: int = _CLIENTS) -> ScaleResult:
    """Compare two routers with one edge each, which run at the same time, with one router with two edges.

    Both sides have the same number of processes, clients and connections, so both load a small machine alike.
    """
    single: list[float] = []
    double: list[float] = []
    with own_router(1) as one, own_router(1) as other, own_router(2) as two, ThreadPoolExecutor(2) as threads:
        apart = [CycleOptions(target, clients, seconds / rounds, 0.5, processes=1) for target in (one, other)]
        together = CycleOptions(two, 2 * clients, seconds / rounds, 0.5, processes=2)
        for _ in range(rounds):
            single.append(mean(map(_edge_us, threads.map(run_cycle, apart))))
            double.append(_edge_us(run_cycle(together)))
    alone, both = median(single), median(double)
    return ScaleResult(alone, both, 2 * alone / both)


def run_traces(seconds: float, rounds: int = 9, clients: int = _CLIENTS) -> TracesResult:
    """Compare an edge without tracing with one that traces 1 % of messages to a collector on this machine."""
    with _collector() as (url, exports):
        settings = {"WEIR_TELEMETRY_TRACES": url, "WEIR_TELEMETRY_SAMPLE_RATIO": str(_RATIO)}
        with own_router(1) as off, own_router(1, settings) as on:
            untraced, traced = cycles_by_turns(
                CycleOptions(off, clients, seconds / rounds, 0.5),
                CycleOptions(on, clients, seconds / rounds, 0.5),
                rounds,
            )
    return TracesResult(untraced, traced, 1 - untraced / traced, len(exports))


def cycles_by_turns(first: CycleOptions, second: CycleOptions, rounds: int) -> tuple[float, float]:
    """Return the median CPU time of the edges per cycle, in µs, of each side."""
    costs: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        sides = ((first, costs[0]), (second, costs[1]))
        for options, found in sides if number % 2 else reversed(sides):
            found.append(_edge_us(run_cycle(options)))
    return median(costs[0]), median(costs[1])


def _edge_us(result: CycleResult) -> float:
    if result.errors or result.edge_us is None:
        raise BenchError(
            f"{result.errors} clients stopped after an error: {result.first_error or 'no cycle was completed'}"
        )
    return result.edge_us


@contextmanager
def _collector() -> Iterator[tuple[str, list[int]]]:
    """Run a collector that accepts spans (OTLP over HTTP) and drops them. The list gets the size of every request."""
    exports: list[int] = []

    class Sink(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            exports.append(len(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", exports
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
