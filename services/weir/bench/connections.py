"""`weir bench connections`: what an idle subscribed client costs a router, and how fast they come."""

import resource
import time
from dataclasses import dataclass

from weir.bench.lanes import bounded, create_queue, open_client
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
    at_once: int = 32  # handshakes under way at once, in all processes
    keys: KeyType = "x25519"
    processes: int = 0


@dataclass(frozen=True)
class ConnectionsResult:
    connections: int
    handshakes_per_s: float
    handshake_us: float | None = None  # the router's CPU
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
        workers.tell("connect")
        cpus: list[float] = workers.gather()
        used = spent(before, usage(target.pids, None))
        workers.tell("subscribe")
        workers.gather()
        time.sleep(_SETTLE)
        rss = sum(map(rss_bytes, target.pids)) - rss
        workers.tell("end")
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
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def connect(_: int) -> SmpClient:
        return await open_client(target)

    async def subscribe(client: SmpClient) -> None:
        await create_queue(target, client, options.keys, secure=False)

    # A process's first clients cost what all later ones share.
    warm = await bounded(share.at_once, range(_WARM), connect)
    await bounded(share.at_once, warm, subscribe)
    for client in warm:
        await client.close()
    await worker.ready()
    cpu = time.process_time()
    clients = await bounded(share.at_once, range(share.connections), connect)
    await worker.ready(time.process_time() - cpu)
    await bounded(share.at_once, clients, subscribe)
    await worker.ready()
