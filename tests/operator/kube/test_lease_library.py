"""Why kubernetes.aio.leaderelection is not used. It runs here on its own LeaseLock, on an HTTP server with one Lease.

Once one of these tests fails, look at the library again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from kubernetes.aio.client import ApiClient
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock
from pydantic import ValidationError

from weir_operator.kinds.resources import RESOURCES
from weir_operator.kube.api import Api
from weir_operator.kube.lease import Lease
from weir_operator.kube.login import Login

NAME = "weir-operator"


class LeaseServer:
    """The API server as far as one Lease needs it: versions, conflicts, and a list of requests."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.vacate()
        self.requests: list[str] = []
        self.runner: web.AppRunner | None = None

    @property
    def holder(self) -> str:
        assert self.lease is not None
        found: str = self.lease["spec"].get("holderIdentity") or ""
        return found

    def write(self, body: dict[str, Any]) -> web.Response:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.lease = body
        return web.json_response(body)

    def vacate(self) -> None:
        """A Lease that nobody holds."""
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
        self.write({**lease, "metadata": {"name": NAME, "namespace": "ns"}, "spec": {"leaseDurationSeconds": 3}})

    def give_to(self, holder: str) -> None:
        assert self.lease is not None
        self.write(self.lease | {"spec": self.lease["spec"] | {"holderIdentity": holder, "leaseTransitions": 7}})

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request.method)
        if request.method == "GET":
            if self.lease is None:
                return web.json_response({"code": 404, "reason": "NotFound"}, status=404)
            return web.json_response(self.lease)
        body = json.loads(await request.text())
        if request.method == "PUT" and body["metadata"].get("resourceVersion") != str(self.version):
            return web.json_response({"code": 409, "reason": "Conflict"}, status=409)
        return self.write(body)


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> AsyncIterator[LeaseServer]:
    made = LeaseServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    made.runner = web.AppRunner(app)
    await made.runner.setup()
    await web.TCPSite(made.runner, "127.0.0.1", unused_tcp_port).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{unused_tcp_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    yield made
    await made.runner.cleanup()


class LibraryElection:
    """The library's election with its shortest times: it starts `work`, and stops it when the lock is lost."""

    def __init__(self, client: ApiClient) -> None:
        self.working = asyncio.Event()
        self.stopped = asyncio.Event()
        lock = LeaseLock(NAME, "ns", "one", client)
        self.election = LeaderElection(Config(lock, 3, 2, 1, self._work, self._stop))

    async def _work(self) -> None:
        self.working.set()
        await asyncio.Event().wait()

    async def _stop(self) -> None:
        self.stopped.set()


@pytest_asyncio.fixture
async def client(server: LeaseServer) -> AsyncIterator[ApiClient]:
    made = await Login("test").open_client()
    yield made
    await made.close()


@pytest_asyncio.fixture
async def ours(server: LeaseServer) -> AsyncIterator[Lease]:
    api = Api(Login("test"), RESOURCES, "test")
    yield Lease(api, "ns", NAME, "one", 1.5)
    await api.close()


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_the_library_cannot_create_the_lease(server: LeaseServer, client: ApiClient, ours: Lease) -> None:
    server.lease = None
    with pytest.raises(ValidationError, match="pretty"):
        await LibraryElection(client).election.run()

    await ours.acquire()
    assert server.holder == "one"


async def test_the_library_keeps_the_lease_after_a_stop(server: LeaseServer, client: ApiClient, ours: Lease) -> None:
    library = LibraryElection(client)
    running = asyncio.create_task(library.election.run())
    await library.working.wait()
    await end(running)
    assert server.holder == "one"

    server.vacate()
    await ours.acquire()
    await ours.release()
    assert server.holder == ""


async def test_the_library_works_on_while_another_holds_the_lease(
    server: LeaseServer, client: ApiClient, ours: Lease
) -> None:
    library = LibraryElection(client)
    running = asyncio.create_task(library.election.run())
    await library.working.wait()
    server.give_to("two")
    server.requests.clear()
    while server.requests.count("GET") < 2:
        await asyncio.sleep(0.05)
    # The replica has read the new holder's name, and read it once more a period later.
    assert not library.stopped.is_set()
    await end(running)

    server.vacate()
    await ours.acquire()
    server.give_to("two")
    server.requests.clear()
    async with asyncio.timeout(5):
        await ours.hold()
    # The first write after the change is refused. The next answer names the new holder, which ends the work.
    assert server.requests == ["PUT", "GET"]


async def test_the_library_ends_with_the_connection(server: LeaseServer, client: ApiClient, ours: Lease) -> None:
    library = LibraryElection(client)
    running = asyncio.create_task(library.election.run())
    await library.working.wait()
    server.vacate()
    await ours.acquire()
    assert server.runner is not None
    await server.runner.cleanup()
    with pytest.raises(aiohttp.ClientConnectionError):
        await running

    # Ours tries again until its time is over.
    async with asyncio.timeout(5):
        await ours.hold()


async def test_the_library_needs_two_requests_where_ours_needs_one(
    server: LeaseServer, client: ApiClient, ours: Lease
) -> None:
    library = LibraryElection(client)
    running = asyncio.create_task(library.election.run())
    await library.working.wait()
    server.requests.clear()
    while len(server.requests) < 4:
        await asyncio.sleep(0.05)
    await end(running)
    assert server.requests[:4] == ["GET", "PUT", "GET", "PUT"]

    server.vacate()
    await ours.acquire()
    server.requests.clear()
    holding = asyncio.create_task(ours.hold())
    while len(server.requests) < 3:
        await asyncio.sleep(0.05)
    await end(holding)
    assert set(server.requests) == {"PUT"}
