"""`weir bench cycle`: pairs of clients that send, receive and acknowledge messages as fast as the router answers."""

import time
from array import array
from dataclasses import dataclass, replace

from weir.bench.clients import bounded, open_client
from weir.bench.pairs import Counts, Pair
from weir.bench.system import Spent
from weir.bench.target import Target
from weir.bench.workers import Worker, default_processes, measure_window, pool, sleep_until, split
from weir.crypto.keys import KeyType

_SETUP_LIMIT = 16
_BOTTLENECK = 0.85  # A generator process that uses more of a core than this may limit the result.


@dataclass(frozen=True)
class CycleOptions:
    target: Target
    clients: int = 32  # pairs of a sender and a recipient, each with a connection of its own
    seconds: float = 10.0
    warmup: float = 2.0
    size: int = 16000
    keys: KeyType = "x25519"
    processes: int = 0  # 0: as many as there are cores


@dataclass(frozen=True)
class CycleResult:
    cycles: int
    cycles_per_s: float
    p50_ms: float
    p99_ms: float
    delivery_p50_ms: float
    delivery_p99_ms: float
    errors: int
    first_error: str
    processes: int
    generator_cores: float  # share of a core that the busiest generator process used
    generator_us: float  # generator CPU per cycle
    generator_bound: bool
    machine_fraction: float
    edge_us: float | None = None  # CPU per cycle. None, like all below: the router's processes cannot be read
    redis_us: float | None = None
    edge_cores: tuple[float, ...] = ()
    redis_calls_per_cycle: float | None = None
    cycles_per_cpu_s: float | None = None
    cycles_per_edge_cpu_s: float | None = None


@dataclass(frozen=True)
class _Share:
    options: CycleOptions
    clients: int


@dataclass
class _Counted:
    cycles: array  # type: ignore[type-arg]
    deliveries: array  # type: ignore[type-arg]
    errors: int
    first_error: str
    cpu_s: float


def run_cycle(options: CycleOptions) -> CycleResult:
    processes = options.processes or default_processes(options.clients)
    shares = [_Share(options, clients) for clients in split(options.clients, processes)]
    with pool(_generate, shares) as workers:
        workers.gather()
        used = measure_window(workers, options.target, options.warmup, options.seconds)
        counted: list[_Counted] = workers.gather()
    return _result(options, counted, used)


def _result(options: CycleOptions, counted: list[_Counted], used: Spent) -> CycleResult:
    latencies = sorted(latency for one in counted for latency in one.cycles)
    deliveries = sorted(latency for one in counted for latency in one.deliveries)
    cycles = len(latencies)
    generator_cores = max(one.cpu_s for one in counted) / options.seconds
    known = bool(options.target.pids)
    server_busy = max((*used.edge_fractions, used.redis_s / used.wall_s), default=0.0)
    result = CycleResult(
        cycles=cycles,
        cycles_per_s=cycles / options.seconds,
        p50_ms=percentile(latencies, 0.5) * 1000,
        p99_ms=percentile(latencies, 0.99) * 1000,
        delivery_p50_ms=percentile(deliveries, 0.5) * 1000,
        delivery_p99_ms=percentile(deliveries, 0.99) * 1000,
        errors=sum(one.errors for one in counted),
        first_error=next((one.first_error for one in counted if one.first_error), ""),
        processes=len(counted),
        generator_cores=generator_cores,
        generator_us=sum(one.cpu_s for one in counted) / cycles * 1e6 if cycles else 0.0,
        generator_bound=generator_cores > _BOTTLENECK and not (known and server_busy > generator_cores),
        machine_fraction=used.machine_fraction,
    )
    if not known or not cycles:
        return result
    return replace(
        result,
        edge_us=used.edges_s / cycles * 1e6,
        redis_us=used.redis_s / cycles * 1e6,
        edge_cores=used.edge_fractions,
        redis_calls_per_cycle=used.redis_commands / cycles,
        cycles_per_cpu_s=cycles / (used.edges_s + used.redis_s),
        cycles_per_edge_cpu_s=cycles / used.edges_s,
    )


def floor_fractions(result: CycleResult, floor: float) -> dict[str, float]:
    """Divide the router's cycles per CPU-second by `floor`: of edges and Redis together, and of the edges alone."""
    values = {"floor_cycles_per_cpu_s": floor}
    if result.cycles_per_cpu_s is not None and result.cycles_per_edge_cpu_s is not None:
        values["floor_fraction"] = result.cycles_per_cpu_s / floor
        values["edge_floor_fraction"] = result.cycles_per_edge_cpu_s / floor
    return values


def percentile(ordered: list[float], fraction: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))] if ordered else 0.0


async def _generate(worker: Worker, share: _Share) -> _Counted:
    options, target = share.options, share.options.target
    counts, created = Counts(), worker.creates(target)

    async def make(_: int) -> Pair:
        recipient, sender = await open_client(target), await open_client(target)
        queue = await created.queue(recipient, options.keys)
        return Pair(sender, recipient, queue, options.size, counts)

    pairs = await bounded(_SETUP_LIMIT, range(share.clients), make)
    counts.begin, counts.end = await worker.report()
    for pair in pairs:
        pair.start()
    await sleep_until(counts.begin)
    cpu = time.process_time()
    await sleep_until(counts.end)
    cpu = time.process_time() - cpu
    for pair in pairs:
        pair.stop()
    return _Counted(counts.cycles, counts.deliveries, counts.errors, counts.first_error, cpu)
