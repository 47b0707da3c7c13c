"""Benches that need our own router: a small run of each, on two edges and an embedded Redis."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.bench.left import left
from weir.bench.association import run_association
from weir.bench.connections import ConnectionsOptions, run_connections
from weir.bench.cross import CrossOptions, run_cross
from weir.bench.cycle import CycleOptions, run_cycle
from weir.bench.fairness import fairness_keys, run_fairness
from weir.bench.memory import MemoryOptions, run_memory
from weir.bench.own_router import own_router
from weir.bench.rollups import run_rollups
from weir.bench.service import ServiceOptions, run_service
from weir.bench.stall import StallOptions, run_stall
from weir.bench.store import store_fill
from weir.bench.subscribe import SubscribeOptions, run_subscribe
from weir.bench.target import Target
from weir.bench.timing import run_timing
from weir.bench.turns import run_scale, run_traces


@pytest.fixture(scope="module")
def live() -> Iterator[Target]:
    with own_router(2) as target:
        yield replace(target, own=False)  # as an operator's router: the benches must clean up


@pytest.fixture
def router(live: Target) -> Iterator[Target]:
    """The router, on which every bench leaves nothing."""
    yield live
    assert left(live) == []


def test_cycle(router: Target) -> None:
    result = run_cycle(CycleOptions(router, clients=4, seconds=0.5, warmup=0.2, processes=1))
    assert result.errors == 0 and result.cycles > 4
    assert result.redis_us and result.redis_calls_per_cycle and len(result.edge_cores) == 2


def test_connections_and_subscriptions(router: Target) -> None:
    assert run_connections(ConnectionsOptions(router, connections=10, processes=1)).handshakes_per_s > 0
    assert run_subscribe(SubscribeOptions(router, queues=600, connections=2, processes=1)).errors == 0


def test_cross(router: Target) -> None:
    result = run_cross(CrossOptions(router, clients=2, seconds=0.5, warmup=0.2))
    assert result.errors == 0 and result.same_cycles_per_s > 0 and result.cross_cycles_per_s > 0


def test_service(router: Target) -> None:
    result = run_service(ServiceOptions(router, queues=30, waiting=20, rounds=3, slow_seconds=0.2))
    assert 0 < result.subs_to_soks_ms <= result.subs_to_alls_ms
    assert result.subs_to_first_msg_ms is not None and result.redis_calls
    assert result.edge_mib_above_idle is not None


def test_service_filled_through_the_store(router: Target) -> None:
    result = run_service(ServiceOptions(router, queues=1000, waiting=5, rounds=1), store_fill(router))
    assert 0 < result.subs_to_soks_ms <= result.subs_to_alls_ms


def test_service_without_messages(router: Target) -> None:
    result = run_service(ServiceOptions(router, queues=3, waiting=0, rounds=1))
    assert result.subs_to_first_msg_ms is None and result.subs_to_alls_ms > 0


def test_association(router: Target) -> None:
    result = run_association(router, queues=300, rounds=1)
    assert result.rate_fraction > 0 and result.generator_cores > 0
    assert result.cpu_fraction is None or result.cpu_fraction > 0  # a tick is long for so few


def test_two_edges_against_one() -> None:
    result = run_scale(0.4, rounds=1, clients=2)
    assert result.two_edges_gain > 0


def test_traces() -> None:
    result = run_traces(1.0, rounds=1, clients=4)
    assert result.untraced_edge_us > 0 and result.traced_edge_us > 0
    assert result.exports > 0  # waiting spans leave when the edge ends


def test_rollups() -> None:
    result = run_rollups(1.0, rounds=1, clients=4)
    assert result.off_edge_us > 0 and result.second_edge_us > 0
    assert 0 < result.counting_us < result.off_edge_us
    assert result.rollups_cost >= result.counting_us / result.off_edge_us


def test_memory(router: Target) -> None:
    result = run_memory(MemoryOptions(router, queues=300, messages=20, size=1000))
    assert result.redis_bytes_per_queue > 0 and result.redis_bytes_per_message > 1000


def test_stall(router: Target) -> None:
    result = run_stall(StallOptions(router, queues=300))
    assert result.subs_per_block > 100 and result.quiet_p50_ms > 0 and result.busy_p50_ms > 0


def test_fairness() -> None:
    (result,) = run_fairness(rounds=1, cycles=3, kinds=["talks nonsense"])
    assert set(fairness_keys([result])) > {"talks_nonsense_same_edge_p99", "worst_same_edge_p99"}


def test_timing() -> None:
    result = run_timing(repeats=3, pairs=[("ed25519", "x25519")])
    assert len(result.ratios) == 7 and result.worst_ratio >= 1
    assert "TCHK ed25519/x25519, notification router" in result.ratios
