"""The client on a real HTTP server: what goes over the wire, what errors become, and that every request is counted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from aiohttp import web

from weir_operator import metrics
from weir_operator.api import Api, ApiError

Seen = list[tuple[str, str, dict[str, str], dict[str, str], Any]]


class Server:
    def __init__(self) -> None:
        self.seen: Seen = []
        self.answers: list[tuple[int, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        text = await request.text()
        body = json.loads(text) if text else None
        self.seen.append((request.method, request.path, dict(request.query), dict(request.headers), body))
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
    made = Api()
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


async def test_every_request_is_counted(server: Server, api: Api) -> None:
    def count(verb: str, code: str) -> float:
        return metrics.API_REQUESTS.labels(verb, code)._value.get()

    before = count("GET", "200"), count("PATCH", "409")
    server.answers = [(200, {}), (409, {})]
    await api.get("Secret", "ns", "s")
    with pytest.raises(ApiError):
        await api.apply(CHILD, force=False)
    assert (count("GET", "200"), count("PATCH", "409")) == (before[0] + 1, before[1] + 1)
