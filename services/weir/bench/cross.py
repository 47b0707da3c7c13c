"""`weir bench cross`: the cost of a message whose sender and recipient are on different edges, compared with a message
whose sender and recipient are on the same edge."""

import os
from dataclasses import dataclass
from pathlib import Path

from weir.bench.clients import bounded, open_client
from weir.bench.pairs import Counts, Pair
from weir.bench.system import Spent
from weir.bench.target import BenchError, Target
from weir.bench.workers import Worker, measure_window, pool, sleep_until
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyType

_SETUP_LIMIT = 16


@dataclass(frozen=True)
class CrossOptions:
    target: Target
    clients: int = 16  # pairs on the same edge, and as many pairs on different edges
    seconds: float = 5.0
    warmup: float = 1.0
    size: int = 16000
    keys: KeyType = "x25519"


@dataclass(frozen=True)
class CrossResult:
    same_cycles_per_s: float
    cross_cycles_per_s: float
    same_redis_us: float
    cross_redis_us: float
    cross_extra_redis_us: float
    same_edge_us: float
    cross_edge_us: float
    errors: int


def run_cross(options: CrossOptions) -> CrossResult:
    target = options.target
    if len(target.pids) < 2 or target.redis_url is None:
        raise BenchError("cross needs --home of a `weir up` with at least two edges")
    measured: list[tuple[int, Spent]] = []
    errors = 0
    for same in (True, False):
        with pool(_generate, [(options, same)]) as workers:
            workers.gather()
            used = measure_window(workers, target, options.warmup, options.seconds)
            ((cycles, failed, first_error),) = workers.gather()
        if not cycles:
            raise BenchError(f"no cycle was completed: {first_error or 'the router did not answer'}")
        errors += failed
        measured.append((cycles, used))
    (same_cycles, same_used), (cross_cycles, cross_used) = measured
    same_redis, cross_redis = same_used.redis_s / same_cycles * 1e6, cross_used.redis_s / cross_cycles * 1e6
    return CrossResult(
        same_cycles / options.seconds,
        cross_cycles / options.seconds,
        same_redis,
        cross_redis,
        cross_redis - same_redis,
        same_used.edges_s / same_cycles * 1e6,
        cross_used.edges_s / cross_cycles * 1e6,
        errors,
    )


def edges_of(clients: list[SmpClient], port: int, pids: tuple[int, ...]) -> list[int]:
    """Return the process id of each client's edge, or 0. All edges must run on this machine."""
    inodes: dict[int, str] = {}
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port:
                inodes[int(fields[2].rpartition(":")[2], 16)] = fields[9]
    owners: dict[str, int] = {}
    for pid in pids:
        for descriptor in os.scandir(f"/proc/{pid}/fd"):
            try:
                name = os.readlink(descriptor.path)
            except OSError:
                continue
            if name.startswith("socket:["):
                owners[name[8:-1]] = pid
    return [owners.get(inodes.get(client.connection.local_port, ""), 0) for client in clients]


async def _generate(worker: Worker, share: tuple[CrossOptions, bool]) -> tuple[int, int, str]:
    options, same = share
    target = options.target
    counts, created = Counts(), worker.creates(target)

    async def connect(_: int) -> SmpClient:
        return await open_client(target)

    # The kernel chooses the edge of a connection: open more connections than needed and pick among them.
    clients = await bounded(_SETUP_LIMIT, range(options.clients * 4), connect)
    edges = edges_of(clients, target.address.effective_port, target.pids)
    by_edge: dict[int, list[SmpClient]] = {}
    for client, edge in zip(clients, edges, strict=True):
        by_edge.setdefault(edge, []).append(client)
    by_edge.pop(0, None)
    if len(by_edge) < 2:
        raise BenchError("all connections are on one edge")
    pairs = []
    for sender, recipient in _pick(list(by_edge.values()), options.clients, same):
        queue = await created.queue(recipient, options.keys)
        pairs.append(Pair(sender, recipient, queue, options.size, counts))
    counts.begin, counts.end = await worker.report()
    for pair in pairs:
        pair.start()
    await sleep_until(counts.end)
    for pair in pairs:
        pair.stop()
    return len(counts.cycles), counts.errors, counts.first_error


def _pick(groups: list[list[SmpClient]], wanted: int, same: bool) -> list[tuple[SmpClient, SmpClient]]:
    """Pick pairs of clients from the groups, which hold the clients of one edge each."""
    picked: list[tuple[SmpClient, SmpClient]] = []
    while len(picked) < wanted:
        groups.sort(key=len, reverse=True)
        first, second = (groups[0], groups[0]) if same else (groups[0], groups[1])
        if not second or len(first) < 2:
            break
        picked.append((first.pop(), second.pop()))
    if not picked:
        raise BenchError("not enough connections on each edge")
    return picked
