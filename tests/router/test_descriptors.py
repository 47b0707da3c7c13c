"""An edge whose file descriptors are used up by clients: it refuses more, and everything else goes on."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.router.fleet import router_config
from tests.support.ports import free_port
from tests.support.redis import client_of, discard, start_server
from weir.client.smp import SmpClient
from weir.redis.embedded import Embedded

LIMIT = 128


class Process:
    """An edge that may have 128 descriptors."""

    def __init__(self, redis: Embedded, identity: Path, directory: Path) -> None:
        self.redis = redis
        self.ports = {name: free_port() for name in ("smp", "http")}
        config = router_config(redis.url, identity, directory)
        fingerprint = (identity / "fingerprint").read_text().strip()
        self.address = f"smp://{fingerprint}@127.0.0.1:{self.ports['smp']}"
        environ = os.environ | {
            "WEIR_TRANSPORT_PORTS": str(self.ports["smp"]),
            "WEIR_TRANSPORT_LISTEN": "127.0.0.1",
            "WEIR_TRANSPORT_HOSTS": "127.0.0.1",
            "WEIR_TRANSPORT_IDENTITY": str(identity),
            "WEIR_REDIS_URL": redis.url,
            "WEIR_REDIS_PLACEMENT_KEY": str(config.redis.placement_key),
            "WEIR_HTTP_PORT": str(self.ports["http"]),
            "WEIR_HTTP_METRICS_PORT": "0",
        }
        reading, writing = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weir.cli.main", "smp", "edge", "--ready-fd", str(writing)],
            env=environ,
            pass_fds=[writing],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)),
        )
        os.close(writing)
        with os.fdopen(reading) as pipe:
            assert json.loads(pipe.readline())["ready"] is True

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def get(self, path: str) -> str:
        def read() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['http']}{path}", timeout=10) as answer:
                text: str = answer.read().decode()
                return text

        return await asyncio.to_thread(read)


@pytest.fixture
def edge(identity: Path, tmp_path: Path) -> Iterator[Process]:
    redis = start_server()
    process = Process(redis, identity, tmp_path)
    yield process
    process.process.terminate()
    assert process.process.wait(20) == 0
    discard(redis)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_at_the_limit_of_file_descriptors(edge: Process) -> None:
    client = await SmpClient.connect(edge.address, reply_timeout=10.0)
    silent = [await asyncio.open_connection("127.0.0.1", edge.ports["smp"]) for _ in range(2 * LIMIT)]
    ended = [asyncio.create_task(reader.read()) for reader, _ in silent]
    await until(lambda: sum(task.done() for task in ended) > LIMIT and edge.descriptors < LIMIT)
    await client.ping()
    assert await edge.get("/readyz") == "ready\n"
    with client_of(edge.redis) as redis:  # every connection of the edge to Redis breaks, and comes back
        redis.client_kill_filter(_type="normal", skipme=True)
    await client.ping()
    metrics = await edge.get("/metrics")
    (line,) = [line for line in metrics.splitlines() if line.startswith('weir_connections_ended{reason="refused"}')]
    assert int(line.split()[1]) > LIMIT
    for task, (_, writer) in zip(ended, silent, strict=True):
        writer.close()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # a refused connection is reset
    await until(lambda: edge.descriptors < LIMIT // 2)
    async with await SmpClient.connect(edge.address, reply_timeout=10.0) as another:
        await another.ping()
    await client.close()
