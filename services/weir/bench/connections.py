"""`weir bench connections`: the memory of an idle subscribed client, and the rate and cost of handshakes."""

import resource
import time
from dataclasses import dataclass

from weir.bench.clients import bounded, open_client
from weir.bench.system import rss_bytes, spent, usage
from weir.bench.target import Target
from weir.bench.workers import Worker, default_processes, pool, split
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyType

_WARM = 64
_SETTLE = 1.0


@dataclass(frozen=True)
class ConnectionsOptions:
    target: Target
    connections: int = 2000
    at_once: int = 32  # concurrent handshakes of all processes together
    keys: KeyType = "x25519"
    processes: int = 0


@dataclass(frozen=True)
class ConnectionsResult:
    connections: int
    handshakes_per_s: float
    handshake_us: float | None = None  # CPU time of the router
    rss_kib_per_connection: float | None = None
    generator_cores: float = 0.0


@dataclass(frozen=True)
class _Share:
    options: ConnectionsOptions
    connections: int
    at_once: int


def run_connections(options: ConnectionsOptions) -> ConnectionsResult:
    processes = options.processes or default_processes(options.connections)
    at_once = max(1, options.at_once // processes)
    shares = [_Share(options, count, at_once) for count in split(options.connections, processes)]
    target = options.target
    with pool(_hold, shares) as workers:
        workers.gather()
        time.sleep(_SETTLE)
        rss = sum(map(rss_bytes, target.pids))
        before = usage(target.pids, None)
        workers.start_all("connect")
        cpus: list[float] = workers.gather()
        used = spent(before, usage(target.pids, None))
        workers.start_all("subscribe")
        workers.gather()
        time.sleep(_SETTLE)
        rss = sum(map(rss_bytes, target.pids)) - rss
        workers.start_all("end")
        workers.gather()
    known = bool(target.pids)
    return ConnectionsResult(
        options.connections,
        options.connections / used.wall_s,
        used.edges_s / options.connections * 1e6 if known else None,
        rss / options.connections / 1024 if known else None,
        max(cpus) / used.wall_s,
    )


async def _hold(worker: Worker, share: _Share) -> None:
    options, target = share.options, share.options.target
    created = worker.creates(target)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def connect(_: int) -> SmpClient:
        return await open_client(target)

    async def subscribe(client: SmpClient) -> None:
        await created.queue(client, options.keys, secure=False)

    # The first clients make the router allocate memory that all later clients share: do not measure them.
    warm = await bounded(share.at_once, range(_WARM), connect)
    await bounded(share.at_once, warm, subscribe)
    for client in warm:
        await client.close()
    await worker.report()
    cpu = time.process_time()
    clients = await bounded(share.at_once, range(share.connections), connect)
    await worker.report(time.process_time() - cpu)
    await bounded(share.at_once, clients, subscribe)
    await worker.report()
