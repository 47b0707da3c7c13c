"""The client on a real HTTP server: what goes over the wire, what errors become, and that every request is counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from aiohttp import web

from weir_operator.kinds.resources import RESOURCES
from weir_operator.kube.api import Api, ApiError
from weir_operator.kube.login import Login

Seen = list[tuple[str, str, dict[str, str], dict[str, str], Any]]


class Server:
    def __init__(self) -> None:
        self.seen: Seen = []
        self.answers: list[tuple[int, Any]] = []
        self.held: dict[str, asyncio.Event] = {}  # by path: answered when the event is set

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else None
        self.seen.append((request.method, request.path, dict(request.query), dict(request.headers), body))
        if request.path in self.held:
            await self.held[request.path].wait()
            return web.json_response({"held": True})
        status, answer = self.answers.pop(0) if self.answers else (200, {})
        return web.json_response(answer, status=status)


@pytest_asyncio.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> AsyncIterator[Server]:
    made = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{unused_tcp_port}"}}],
        "users": [{"name": "u", "user": {"token": "word"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    yield made
    await runner.cleanup()


@pytest_asyncio.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    made = Api(Login("test"), RESOURCES, "weir-operator")
    yield made
    await made.close()


CHILD = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "ns"}}


async def test_apply_is_server_side(server: Server, api: Api) -> None:
    await api.apply(CHILD, force=True)
    method, path, query, headers, body = server.seen[0]
    assert (method, path) == ("PATCH", "/apis/apps/v1/namespaces/ns/deployments/d")
    assert query == {"fieldManager": "weir-operator", "force": "true"}
    assert headers["Content-Type"] == "application/apply-patch+yaml"
    assert headers["Authorization"] == "Bearer word"
    assert body == CHILD


async def test_paths_of_core_and_named_groups(server: Server, api: Api) -> None:
    await api.get("Secret", "ns", "s")
    await api.put_status("SMPRouter", "ns", "r", "uid", {"a": 1})
    await api.create({"kind": "Event", "metadata": {"namespace": "ns"}})
    assert [(m, p) for m, p, *_ in server.seen] == [
        ("GET", "/api/v1/namespaces/ns/secrets/s"),
        ("PATCH", "/apis/weir.dev/v1alpha1/namespaces/ns/smprouters/r/status"),
        ("POST", "/api/v1/namespaces/ns/events"),
    ]
    # An object of another life with the same name is not written to.
    assert server.seen[1][4]["metadata"]["uid"] == "uid"


async def test_deletion_names_the_very_object_and_is_quiet_about_its_absence(server: Server, api: Api) -> None:
    server.answers = [(404, {}), (409, {}), (403, {"reason": "Forbidden", "message": "no"})]
    await api.delete("Deployment", "ns", "d", "uid", foreground=True)
    assert server.seen[0][4]["preconditions"] == {"uid": "uid"}
    assert server.seen[0][4]["propagationPolicy"] == "Foreground"
    await api.delete("Deployment", "ns", "d", "uid")
    with pytest.raises(ApiError, match="no"):
        await api.delete("Deployment", "ns", "d", "uid")


async def test_errors_speak_the_servers_words(server: Server, api: Api) -> None:
    server.answers = [(422, {"reason": "Invalid", "message": "spec.replicas: no"}), (404, {}), (500, "plain")]
    with pytest.raises(ApiError) as refused:
        await api.apply(CHILD, force=False)
    assert (refused.value.status, refused.value.reason, refused.value.message) == (422, "Invalid", "spec.replicas: no")
    assert await api.get("Secret", "ns", "s") is None
    with pytest.raises(ApiError) as broken:
        await api.get("Secret", "ns", "s")
    assert broken.value.status == 500


async def test_an_expired_login_is_renewed_once(server: Server, api: Api) -> None:
    server.answers = [(401, {}), (200, {"kind": "Secret"})]
    assert await api.get("Secret", "ns", "s") == {"kind": "Secret"}
    server.answers = [(401, {}), (401, {"message": "who?"})]
    with pytest.raises(ApiError, match=r"who\?"):
        await api.get("Secret", "ns", "s")


async def test_lists_come_in_pages(server: Server, api: Api) -> None:
    server.answers = [
        (200, {"items": [1, 2], "metadata": {"continue": "more", "resourceVersion": "7"}}),
        (200, {"items": [3], "metadata": {"resourceVersion": "7"}}),
    ]
    assert await api.list_all("Service", None, {"a": "b", "c": "d"}) == ([1, 2, 3], 7)
    assert [path for _, path, *_ in server.seen] == ["/api/v1/services"] * 2
    assert server.seen[0][2] == {"labelSelector": "a=b,c=d", "limit": "250"}
    assert server.seen[1][2]["continue"] == "more"


async def test_groups_and_kinds(server: Server, api: Api) -> None:
    group = {"name": "keda.sh", "versions": [{"groupVersion": "keda.sh/v1alpha1"}]}
    server.answers = [(200, {"groups": [group]}), (200, {"resources": [{"kind": "SMPRouter"}]}), (404, {})]
    assert await api.groups() == {"keda.sh", "keda.sh/v1alpha1"}
    assert await api.resources("weir.dev/v1alpha1") == {"SMPRouter"}
    assert await api.resources("weir.dev/v1alpha1") == frozenset()


async def test_every_request_is_counted(server: Server) -> None:
    counted: list[tuple[str, str]] = []
    api = Api(Login("test", lambda verb, code: counted.append((verb, code))), RESOURCES, "weir-operator")
    server.answers = [(200, {}), (409, {})]
    await api.get("Secret", "ns", "s")
    with pytest.raises(ApiError):
        await api.apply(CHILD, force=False)
    await api.close()
    assert counted == [("GET", "200"), ("PATCH", "409")]


async def test_a_conflict_keeps_its_status_and_is_not_repeated(server: Server, api: Api) -> None:
    reason = {"reason": "Conflict", "message": 'conflict with "kubectl": .spec.replicas'}
    server.answers = [(409, reason), (409, {"reason": "Conflict", "message": "the object has been modified"})]
    with pytest.raises(ApiError, match="kubectl") as refused:
        await api.apply(CHILD, force=False)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")
    assert server.seen[0][2] == {"fieldManager": "weir-operator", "force": "false"}
    with pytest.raises(ApiError, match="modified"):
        await api.replace({**CHILD, "metadata": {**CHILD["metadata"], "resourceVersion": "4"}})
    assert server.seen[1][4]["metadata"]["resourceVersion"] == "4"
    assert len(server.seen) == 2


async def test_a_list_whose_snapshot_has_expired_is_read_from_its_beginning(server: Server, api: Api) -> None:
    server.answers = [
        (200, {"items": [1, 2], "metadata": {"continue": "more", "resourceVersion": "7"}}),
        (410, {"reason": "Expired"}),
        (200, {"items": [1], "metadata": {"continue": "rest", "resourceVersion": "9"}}),
        (200, {"items": [3], "metadata": {"resourceVersion": "9"}}),
    ]
    assert await api.list_all("Service", "ns", {}) == ([1, 3], 9)
    assert [query.get("continue") for _, _, query, *_ in server.seen] == [None, "more", None, "rest"]


async def test_a_refused_login_does_not_break_other_calls(server: Server, api: Api) -> None:
    """Calls that wait for their answers over the old connection get them, and one new login serves all."""
    path = "/api/v1/namespaces/ns/secrets/slow"
    server.held[path] = asyncio.Event()
    slow = asyncio.create_task(api.get("Secret", "ns", "slow"))
    while not server.seen:
        await asyncio.sleep(0.01)
    server.answers = [(401, {}), (401, {}), (200, {"n": 1}), (200, {"n": 2})]
    both = await asyncio.gather(api.get("Secret", "ns", "a"), api.get("Secret", "ns", "b"))
    assert {found["n"] for found in both if found is not None} == {1, 2}
    assert len(api._refused) == 1
    server.held[path].set()
    assert await slow == {"held": True}


async def test_nothing_is_written_once_the_lease_is_lost(server: Server) -> None:
    held = [True]
    api = Api(Login("test"), RESOURCES, "weir-operator", may_write=lambda: held[0])
    await api.apply(CHILD, force=True)
    held[0] = False
    for call in (
        api.apply(CHILD, force=True),
        api.create(CHILD),
        api.replace(CHILD),
        api.merge("Deployment", "ns", "d", {}),
        api.put_status("SMPRouter", "ns", "r", "uid", {}),
        api.delete("Deployment", "ns", "d", "uid"),
    ):
        with pytest.raises(ApiError, match="no longer holds the lease"):
            await call
    await api.get("Deployment", "ns", "d")
    await api.close()
    assert [method for method, *_ in server.seen] == ["PATCH", "GET"]
