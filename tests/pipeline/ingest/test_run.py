"""Ingest as a process of its own: killed at any point, stopped, and refused."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.pipeline.conftest import QUICK_JAVA
from tests.pipeline.ingest.support import NOW, each_once, gaps, options, publish, record, run, sequences
from tests.support.redis import RedisServer, client_of, discard, start_server
from weir.pipeline.ingest.registry import Registry

pytestmark = pytest.mark.spark

_WEIR = [sys.executable, "-m", "weir.cli.main", "pipeline", "ingest"]
_SPARK = ["--master", "local[2]", "--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"]
_LIMIT = 300.0


@pytest.fixture
def registry(redis_server: RedisServer) -> Registry:
    return Registry(redis_server.url)


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_server.url) as found:
        yield found


@contextlib.contextmanager
def ingesting(tables: Path, registry: Registry, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    words = [*_WEIR, "--redis", f"{registry.url}#", "--tables", str(tables), *_SPARK, *arguments]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(pid: int) -> list[int]:
    """All processes below this one."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def output(process: "subprocess.Popen[str]") -> list[str]:
    """Return its output until it ends."""
    return process.communicate(timeout=_LIMIT)[0].splitlines()


@contextlib.contextmanager
def held_still(pid: int) -> Iterator[None]:
    """Stop a process and all below it, as they are."""
    pids = [pid, *children(pid)]
    send(pids, signal.SIGSTOP)
    try:
        yield
    finally:
        send(pids, signal.SIGCONT)


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # a child may have ended
            os.kill(pid, number)


def fill(client: Any, registry: Registry, count: int) -> None:
    """Records of three edges, some twice. One edge misses number 5. The last entry cannot be read."""
    for n in range(1, count + 1):
        entries = [record(edge, n) for edge in "abc" if (edge, n) != ("b", 5)]
        publish(client, registry, *entries, *([entries[0]] if n % 7 == 0 else []), at=NOW + n * 1000)
    publish(client, registry, b"bad")


def images(process: "subprocess.Popen[str]", tables: Path, place: Path, seed: int, count: int) -> list[Path]:
    """Ten copies of the disk at random moments: each is what a kill at that moment would leave."""
    chance = random.Random(seed)
    copies: list[Path] = []
    seen: set[Path] = set()
    due = 0
    while process.poll() is None and len(copies) < count:
        now = {path for path in tables.rglob("*") if path.is_file()}
        if now != seen and len(now) > 12:  # the tables are made
            seen, due = now, due - 1
            if due < 0:
                with held_still(process.pid):
                    copies.append(Path(shutil.copytree(tables, place / str(len(copies)))))
                due = chance.randint(0, 2)
        time.sleep(0.002)
    return copies


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.all("more moments at which ingest is killed"))])
def test_killed_at_ten_random_points(spark: Any, client: Any, registry: Registry, tmp_path: Path, seed: int) -> None:
    """Each copy of the disk is continued by another run, and has each record once."""
    fill(client, registry, 60)
    tables = tmp_path / "tables"
    with ingesting(tables, registry, "--once", "--batch", "100") as process:
        copies = images(process, tables, tmp_path, seed, 10)
        assert process.wait(_LIMIT) == 0, output(process)
    assert len(copies) == 10
    expected = each_once(*((edge, n) for edge in "abc" for n in range(1, 61) if (edge, n) != ("b", 5)))
    missing = {("b", 5, 5, "missing")}
    for found in (tables, *copies):
        run(spark, options(found, registry, max_records=100))
        assert sequences(found) == expected, found
        assert gaps(found) == missing, found


@pytest.mark.timeout(900)
def test_kill_9_and_the_next_run(client: Any, registry: Registry, tmp_path: Path) -> None:
    """The next run waits until the JVM of the killed one has ended, continues, and removes what it left."""
    fill(client, registry, 20)
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    tables = tmp_path / "tables"
    words = [*_WEIR, "--redis", f"{registry.url}#", "--tables", str(tables), *_SPARK]
    with subprocess.Popen([*words, "--every", "1s"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert "records in 1 batch" in process.stdout.readline()
        left = [each for each in scratch.glob("weir-pipeline-*/*") if each.is_dir()]
        process.kill()
    assert left
    publish(client, registry, record("d", 1))
    done = subprocess.run(
        [*words, "--once"], capture_output=True, text=True, timeout=_LIMIT, env=environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not [each for each in scratch.glob("weir-pipeline-*/*") if each.is_dir()]
    assert sum(sequences(tables).values()) == 60
    assert set(sequences(tables).values()) == {1}


@pytest.mark.timeout(900)
def test_signals_end_a_run_after_the_batch_and_redis_may_go_away(tmp_path: Path) -> None:
    node = start_server(port=0)
    registry = Registry(node.url)
    try:
        with client_of(node) as client, ingesting(tmp_path / "t", registry, "--every", "1s") as process:
            assert process.stdout is not None
            publish(client, registry, record("a", 1))
            assert process.stdout.readline() == "1 record in 1 batch, lag 0s\n"
            with pytest.raises(subprocess.CalledProcessError) as refused:
                words = [*_WEIR, "--redis", f"{registry.url}#", "--tables", str(tmp_path / "t"), "--once", *_SPARK]
                subprocess.run(words, check=True, capture_output=True, text=True, timeout=_LIMIT)
            line = f"weir pipeline ingest: another `weir pipeline ingest` writes to {tmp_path / 't'}\n"
            assert refused.value.stderr == line
            node.kill()
            while "does not answer" not in (said := process.stdout.readline()):
                assert said
            assert said.startswith("Redis at 127.0.0.1:")
            assert said.endswith("; next try in 1s\n")
            process.send_signal(signal.SIGTERM)
            assert process.wait(_LIMIT) == 0
    finally:
        discard(node)


@pytest.mark.timeout(900)
@pytest.mark.all("a JVM for each worker: a minute")
def test_workers_in_processes_of_their_own(client: Any, registry: Registry, tmp_path: Path) -> None:
    fill(client, registry, 5)
    words = [*_WEIR, "--redis", f"{registry.url}#", "--tables", str(tmp_path / "t"), "--once"]
    words += ["--master", "local-cluster[2,1,1024]"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_LIMIT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(sequences(tmp_path / "t").values()) == 14
