"""`weir bench association`: batched SUB that associates queues with a service, compared with plain batched SUB.

Each side has a connection and prepares all its SUBs before the measurement. Then the sides take short turns. Other load
on the machine affects two neighbouring turns alike, so the ratio of the two is reliable where the rates are not.
"""

import time
from dataclasses import dataclass, field
from statistics import median

from weir.bench.clients import open_client
from weir.bench.subscribe import BlockSender, subscriptions
from weir.bench.system import spent, usage
from weir.bench.target import BenchError, Target
from weir.bench.workers import Pool, Worker, pool
from weir.crypto.certificates import make_self_signed
from weir.transport.smp import ServiceCredentials
from weir.wire.smp.commands import ServiceRole

_TURNS = 6  # measured turns of each side. One unmeasured turn comes first, in which the connection becomes the owner.


@dataclass(frozen=True)
class AssociationResult:
    plain_subs_per_s: float
    service_subs_per_s: float
    rate_fraction: float
    generator_cores: float
    plain_subs_per_cpu_s: float | None = None
    service_subs_per_cpu_s: float | None = None
    cpu_fraction: float | None = None
    plain_edge_us: float | None = None
    plain_redis_us: float | None = None
    service_edge_us: float | None = None
    service_redis_us: float | None = None


@dataclass(frozen=True)
class _Share:
    target: Target
    queues: int  # in one turn
    service: ServiceCredentials | None


@dataclass
class _Side:
    """The sums over one side's turns."""

    rates: list[float] = field(default_factory=list)
    generator_cores: float = 0.0
    queues: int = 0
    edges_s: float = 0.0
    redis_s: float = 0.0

    def take_turn(self, workers: Pool, place: int, share: _Share) -> None:
        target = share.target
        before = usage(target.pids, target.redis_url)
        seconds, cpu_s = workers.run_one(place, "go")
        used = spent(before, usage(target.pids, target.redis_url))
        self.rates.append(share.queues / seconds)
        self.generator_cores = max(self.generator_cores, cpu_s / seconds)
        self.queues += share.queues
        self.edges_s += used.edges_s
        self.redis_s += used.redis_s

    @property
    def per_cpu_s(self) -> float:
        return self.queues / (self.edges_s + self.redis_s)


def run_association(target: Target, queues: int = 6000, rounds: int = 3) -> AssociationResult:
    """Measure with `queues` new queues on each side, `rounds` times."""
    plain, service = _Side(), _Side()
    credentials = ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed())
    for _ in range(rounds):
        shares = [_Share(target, max(1, queues // _TURNS), one) for one in (None, credentials)]
        with pool(_take_turns, shares) as workers:
            workers.gather()
            for place in (0, 1):
                workers.run_one(place, "go")
            for number in range(_TURNS):
                for place in (0, 1) if number % 2 else (1, 0):
                    (plain, service)[place].take_turn(workers, place, shares[place])
    known = bool(target.pids) and plain.edges_s > 0 and service.edges_s > 0
    return AssociationResult(
        median(plain.rates),
        median(service.rates),
        median(one / other for one, other in zip(service.rates, plain.rates, strict=True)),
        max(plain.generator_cores, service.generator_cores),
        *(
            (
                plain.per_cpu_s,
                service.per_cpu_s,
                service.per_cpu_s / plain.per_cpu_s,
                plain.edges_s / plain.queues * 1e6,
                plain.redis_s / plain.queues * 1e6,
                service.edges_s / service.queues * 1e6,
                service.redis_s / service.queues * 1e6,
            )
            if known
            else ()
        ),
    )


async def _take_turns(worker: Worker, share: _Share) -> tuple[float, float]:
    target, count = share.target, share.queues
    created = worker.creates(target)
    async with await open_client(target) as client:
        queues = await created.queues(client, count * (_TURNS + 1), "x25519")
    client = await open_client(target, share.service)
    created.add_service(client)
    connection = client.connection
    turns = [subscriptions(connection, queues[at : at + count]) for at in range(0, len(queues), count)]
    took = (0.0, 0.0)
    for number, contents in enumerate(turns):
        await worker.report(took if number else None)
        sender = BlockSender(connection, contents, count)
        cpu, start = time.process_time(), time.monotonic()
        sender.start()
        await sender.done.wait()
        took = time.monotonic() - start, time.process_time() - cpu
        if sender.errors:
            raise BenchError("the router did not answer every SUB with SOK")
    return took
