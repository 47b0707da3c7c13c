"""`weir bench fairness`: how much a hostile client slows a well-behaved one.

The bench times SEND→MSG→ACK cycles of one client beside each kind of hostile client. Two routers run on this machine.
The hostile client works at the other router, where it takes nothing but processor time, and then at the same edge. The
ratio of these two is the router's doing. The ratio to a machine without a hostile client also contains the work of the
kernel's scheduler. The three take turns, so that other load on the machine affects all of them alike.
"""

import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, fields

import uvloop

from weir.bench.clients import describe, open_client
from weir.bench.created import Created
from weir.bench.cycle import percentile
from weir.bench.hostile import KINDS, hostile_client
from weir.bench.own_router import own_router
from weir.bench.target import BenchError, Target
from weir.wire.smp.commands import ACK, SEND
from weir.wire.smp.replies import MSG, OK

_SIZE = 16000
_RAMP = 0.3  # seconds from the hostile client's first command to the first cycle


@dataclass(frozen=True)
class FairnessResult:
    """Ratios of cycle times. `kind` is the hostile client."""

    kind: str
    same_edge_p50: float  # a hostile client at the same edge, compared with one at the other router
    same_edge_p99: float
    idle_p50: float  # a hostile client at the same edge, compared with none
    idle_p99: float


def fairness_keys(results: Iterable[FairnessResult]) -> dict[str, float]:
    """Return one value per ratio, by names such as `floods_same_edge_p99`, and the worst of the router's own."""
    results = list(results)
    names = [field.name for field in fields(FairnessResult) if field.name != "kind"]
    values = {f"{one.kind.replace(' ', '_')}_{name}": getattr(one, name) for one in results for name in names}
    return values | {"worst_same_edge_p99": max(one.same_edge_p99 for one in results)}


def run_fairness(rounds: int = 5, cycles: int = 120, kinds: Iterable[str] = KINDS) -> list[FairnessResult]:
    settings = {"WEIR_PROXY_ALLOW_LOCAL_RELAYS": "on"}
    with own_router(1, settings) as router, own_router(1, settings) as other:
        uvloop.run(time_cycles(router, 20))
        return [_beside(kind, router, other, rounds, cycles) for kind in kinds]


def _beside(kind: str, router: Target, other: Target, rounds: int, cycles: int) -> FairnessResult:
    idle, elsewhere, same_edge = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        for times, hostile in (
            (idle, nullcontext()),
            (elsewhere, hostile_client(kind, other)),
            (same_edge, hostile_client(kind, router)),
        ):
            with hostile:
                time.sleep(_RAMP)
                times += uvloop.run(time_cycles(router, cycles))
    for times in (idle, elsewhere, same_edge):
        times.sort()
    return FairnessResult(
        kind,
        *(percentile(same_edge, share) / percentile(elsewhere, share) for share in (0.5, 0.99)),
        *(percentile(same_edge, share) / percentile(idle, share) for share in (0.5, 0.99)),
    )


async def time_cycles(target: Target, count: int) -> list[float]:
    """Return the seconds of each cycle of one client, one cycle at a time."""
    times = []
    async with Created(target) as created, await open_client(target) as client:
        queue = await created.queue(client, "x25519")
        for _ in range(count):
            began = time.perf_counter()
            answer = await client.send(SEND(False, bytes(_SIZE)), queue.snd_id, queue.snd_key)
            if not isinstance(answer, OK):
                raise BenchError(f"SEND failed: {describe(answer)}")
            message = (await client.events.get()).reply
            if not isinstance(message, MSG):
                raise BenchError("the router sent a reply other than MSG")
            answer = await client.send(ACK(message.msg_id), queue.rcv_id, queue.rcv_key)
            if not isinstance(answer, OK):
                raise BenchError(f"ACK failed: {describe(answer)}")
            times.append(time.perf_counter() - began)
    return times
