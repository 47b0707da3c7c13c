"""The generator against a router without a store: every version and key, what it counts, what it says when it fails."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from weir.bench import report, workers
from weir.bench.clients import open_client
from weir.bench.connections import ConnectionsOptions, run_connections
from weir.bench.cross import edges_of
from weir.bench.cycle import CycleOptions, floor_fractions, percentile, run_cycle
from weir.bench.subscribe import SubscribeOptions, run_subscribe
from weir.bench.system import Spent, Usage, cpu_seconds, rss_bytes, spent
from weir.bench.target import BenchError, Target, find_target
from weir.cli.bench import main
from weir.cli.errors import Fail
from weir.crypto.keys import KeyType
from weir.wire.versions import VersionRange


@pytest.mark.parametrize(
    ("version", "keys"),
    [(6, "x25519"), (7, "ed448"), (11, "x25519"), (16, "ed25519"), (19, "x25519")],
)
def test_cycle(memory_router: Target, version: int, keys: KeyType) -> None:
    target = replace(memory_router, versions=VersionRange(version, version))
    result = run_cycle(CycleOptions(target, clients=3, seconds=0.3, warmup=0.1, keys=keys, processes=1))
    assert result.errors == 0, result.first_error
    assert result.cycles > 3 and result.cycles_per_s == pytest.approx(result.cycles / 0.3)
    assert 0 < result.delivery_p50_ms <= result.p50_ms <= result.p99_ms
    assert result.edge_us is not None and result.cycles_per_cpu_s is not None


def test_processes_share_the_clients(memory_router: Target) -> None:
    result = run_cycle(CycleOptions(memory_router, clients=3, seconds=0.3, warmup=0.1, processes=2))
    assert result.processes == 2 and result.errors == 0 and result.cycles > 3


def test_connections(memory_router: Target) -> None:
    result = run_connections(ConnectionsOptions(memory_router, connections=50, at_once=8))
    assert result.handshakes_per_s > 0
    assert result.rss_kib_per_connection is not None and result.handshake_us is not None


def test_subscribe(memory_router: Target) -> None:
    result = run_subscribe(SubscribeOptions(memory_router, queues=700, connections=3))
    assert result.errors == 0 and result.subs_per_s > 0 and result.subs_per_cpu_s is not None


async def test_edges_of_finds_the_process_behind_a_connection(memory_router: Target) -> None:
    async with await open_client(memory_router) as one, await open_client(memory_router) as other:
        port = memory_router.address.effective_port
        assert edges_of([one, other], port, memory_router.pids) == [*memory_router.pids] * 2
        assert edges_of([one], port, ()) == [0]


def test_router_that_is_not_there(memory_router: Target) -> None:
    address = replace(memory_router.address, port=1)
    with pytest.raises(BenchError, match="cannot connect: NETWORK"):
        run_cycle(CycleOptions(replace(memory_router, address=address), clients=1, processes=1))


def test_router_that_is_somebody_else(memory_router: Target) -> None:
    address = replace(memory_router.address, fingerprint=bytes(32))
    with pytest.raises(BenchError, match="cannot connect: IDENTITY"):
        run_cycle(CycleOptions(replace(memory_router, address=address), clients=1, processes=1))


# The command


def test_json_has_the_documented_keys(
    memory_router: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "result.json"
    arguments = ["cycle", "--address", str(memory_router.address), "--pid", str(memory_router.pids[0])]
    assert main([*arguments, "--clients", "2", "--seconds", "0.3", "--processes", "1", "--json", str(file)]) == 0
    result = json.loads(file.read_text())
    documented = (Path(__file__).parents[2] / "docs" / "bench.md").read_text()
    assert all(f"`{key}`" in documented for key in result)
    expected = {"bench", "commit", "cycles_per_s", "cycles_per_cpu_s", "floor_fraction", "p50_ms", "p99_ms"}
    assert expected <= result.keys()
    assert "floor_fraction" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["cycle"], "which router? give --address smp://…, or --home DIR of a running `weir up`"),
        (
            ["cycle", "--address", "https://x"],
            "not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]",
        ),
        (["cycle", "--home", "/nonexistent"], "/nonexistent: no `weir up` runs there"),
    ],
)
def test_one_clear_line(arguments: list[str], line: str) -> None:
    with pytest.raises(Fail) as failure:
        main(arguments)
    assert str(failure.value) == line


@pytest.mark.parametrize("bench", ["cross", "memory"])
def test_benches_that_need_our_own_router_say_so(memory_router: Target, bench: str) -> None:
    with pytest.raises(Fail, match="needs --home"):
        main([bench, "--address", str(memory_router.address)])


# The small parts


def test_target_of_a_home(tmp_path: Path) -> None:
    address = "smp://" + "A" * 43 + "=:secret@127.0.0.1:5224"
    run = {"address": address, "edges": [1, 2], "redis": {"url": "unix:///x"}, "placement_key": "/k"}
    (tmp_path / "run.json").write_text(json.dumps(run))
    target = find_target(None, tmp_path, 7)
    assert str(target.address) == address and target.basic_auth == b"secret"
    assert target.versions == VersionRange(7, 7)
    assert target.pids == (1, 2) and target.redis_url == "unix:///x"


@pytest.mark.parametrize(
    ("count", "parts", "expected"), [(10, 3, [4, 3, 3]), (2, 4, [1, 1, 0, 0]), (4, 1, [4]), (0, 2, [0, 0])]
)
def test_split(count: int, parts: int, expected: list[int]) -> None:
    assert workers.split(count, parts) == expected


def test_percentile() -> None:
    ordered = [float(n) for n in range(100)]
    assert percentile(ordered, 0.5) == 50 and percentile(ordered, 0.99) == 99 and percentile([], 0.5) == 0


def test_spent_between_two_moments() -> None:
    before = Usage(1.0, {1: 1.0, 2: 2.0}, None, (10.0, 100.0))
    after = Usage(3.0, {1: 2.0, 2: 2.5}, None, (12.0, 104.0))
    assert spent(before, after) == Spent(2.0, 1.5, 0.0, 0, 0.5, (0.5, 0.25), {})


def test_processes_that_are_gone_used_nothing() -> None:
    assert cpu_seconds(2**22 + 1) == 0 and rss_bytes(2**22 + 1) == 0


def test_floor_fractions(memory_router: Target) -> None:
    result = run_cycle(CycleOptions(memory_router, clients=1, seconds=0.2, warmup=0.1, processes=1))
    fractions = floor_fractions(result, 10000.0)
    assert fractions["floor_fraction"] == (result.cycles_per_cpu_s or 0) / 10000
    assert floor_fractions(replace(result, cycles_per_cpu_s=None), 10000.0) == {"floor_cycles_per_cpu_s": 10000.0}


def test_table() -> None:
    values = {"cycles": 12345, "p50_ms": 1.5, "edge_cores": (0.5, 0.25), "generator_bound": False, "rate_per_s": 1e5}
    assert report.table("cycle", values).splitlines() == [
        "cycle",
        "  cycles           12,345",
        "  p50_ms           1.500 ms",
        "  edge_cores       0.500  0.250",
        "  generator_bound  no",
        "  rate_per_s       100,000.0 /s",
    ]


async def _fail(worker: workers.Worker, share: str) -> None:
    await worker.report()
    raise BenchError(share)


async def _exit(worker: workers.Worker, _share: str) -> None:
    await worker.report()
    import os

    os._exit(3)


def test_failures_of_a_process_are_reported() -> None:
    with workers.pool(_fail, ["no luck"]) as pool:
        pool.gather()
        pool.start_all("go")
        with pytest.raises(BenchError, match="no luck"):
            pool.gather()
    with workers.pool(_exit, [""]) as pool:
        pool.gather()
        pool.start_all("go")
        with pytest.raises(BenchError, match="died"):
            pool.gather()


def test_sleep_until_the_past_returns() -> None:
    asyncio.run(workers.sleep_until(0.0))
