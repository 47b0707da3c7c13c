"""HTTP beside SMP: health, readiness, metrics, the page and its numbers."""

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.router.fleet import Fleet, router_config
from tests.router.surface.pages import start_http
from tests.support.ports import free_port
from tests.support.redis import discard, start_server
from weir.redis.connection import ReplyError
from weir.router.config import Auth, RouterConfig
from weir.router.surface.page import render_page
from weir.surface.http import HttpServer
from weir.surface.settings import Http, Information
from weir.wire.smp.replies import OK


@pytest.fixture
async def http(fleet: Fleet) -> AsyncIterator[HttpServer]:
    server = await start_http(fleet[0])
    yield server
    await server.close()


@pytest.fixture
async def web(http: HttpServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(f"http://127.0.0.1:{http.port}") as session:
        yield session


async def get(web: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with web.get(path) as response:
        return response.status, await response.text()


async def test_health_and_readiness(fleet: Fleet, web: aiohttp.ClientSession) -> None:
    assert await get(web, "/healthz") == (200, "ok\n")
    assert await get(web, "/readyz") == (200, "ready\n")
    await fleet[0].suspend()
    assert await get(web, "/readyz") == (503, "not ready\n")
    assert await get(web, "/healthz") == (200, "ok\n")
    await fleet[0].resume()
    fleet[0].draining = True
    assert await get(web, "/readyz") == (503, "draining\n")


async def test_readiness_ends_before_the_edge_stops_to_accept_and_before_it_cuts_clients(
    fleet: Fleet, web: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An orchestrator that probes sees the edge leave before any client does."""
    edge, client = fleet[0], await fleet.client(0)
    listener = edge._listener
    assert listener is not None
    stop_accepting, seen = listener.stop_accepting, []

    async def look_first() -> None:
        seen.append((await get(web, "/readyz"), client.smp.closed.is_set()))
        await stop_accepting()
        seen.append((await get(web, "/readyz"), client.smp.closed.is_set()))

    monkeypatch.setattr(listener, "stop_accepting", look_first)
    draining = asyncio.create_task(edge.drain())
    await client.smp.closed.wait()
    assert await get(web, "/readyz") == (503, "draining\n")
    await draining
    assert seen == 2 * [((503, "draining\n"), False)]


async def test_readiness_is_tied_to_the_lease(fleet: Fleet, web: aiohttp.ClientSession) -> None:
    assert fleet[0].store.leases.held
    await fleet[0].store.leases.stop()
    assert await get(web, "/readyz") == (503, "not ready\n")


async def test_failures_of_redis_are_told(fleet: Fleet, web: aiohttp.ClientSession) -> None:
    store = fleet[0].store
    async with web.get("/status.json") as response:
        assert (await response.json())["problems"] == []
    with pytest.raises(ReplyError):
        await store.core.ask(0, b"NOSUCH")
    sentence = "Redis answers an error (ERR)."
    assert await get(web, "/readyz") == (200, f"ready\n{sentence}\n")
    samples = {
        sample.labels["kind"]: sample.value
        for family in text_string_to_metric_families((await get(web, "/metrics/edge"))[1])
        for sample in family.samples
        if sample.name == "weir_redis_errors_total"
    }
    assert samples == dict.fromkeys(samples, 0) | {"ERR": 1}
    assert {"OOM", "MISCONF", "timeout", "disconnected"} < samples.keys()
    used = (await store.stats.redis_info())["memory_used_bytes"]
    await store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", int(used * 1.1))
    try:
        numbers = await start_http(fleet[0])  # a new server has no numbers of a moment ago
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{numbers.port}") as session,
            session.get("/status.json") as response,
        ):
            problems = (await response.json())["problems"]
        await numbers.close()
    finally:
        await store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", 0)
    assert problems[0] == sentence
    assert re.fullmatch(
        r"Redis uses \d+ % of the memory that it may use; when it is full, senders get errors.", problems[1]
    )


async def test_numbers_are_the_fleets(fleet: Fleet, web: aiohttp.ClientSession) -> None:
    recipient, sender = await fleet.client(0), await fleet.client(1)
    queue = await recipient.new()
    assert await sender.send(queue, b"hello") == OK()
    await recipient.msg(queue)
    for edge in fleet.edges:
        await edge.save()
    async with web.get("/status.json") as response:
        status = await response.json()
    assert status["edges"] >= 2 and status["connections"] >= 2
    assert status["subscriptions"] >= 1 and status["queues"] >= 1 and status["messages"] >= 1
    assert {"services", "sent", "received", "folds", "time"} <= status.keys()
    assert status["ready"] is True
    code, text = await get(web, "/metrics")
    assert code == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["simplex_smp_clients_total"].samples[0].value >= 2
    assert families["simplex_smp_queues_created"].samples[0].value >= 1
    assert families["weir_redis_up"].samples[0].value == 1
    code, text = await get(web, "/metrics/edge")
    assert code == 200 and "\nweir_edge_clients 1\n" in text and "\nweir_edge_ready 1\n" in text


async def test_stats_survive_and_add_up(fleet: Fleet, config: RouterConfig) -> None:
    """The counts of two edges are in Redis. A third edge that starts later shows the sum."""

    async def created() -> int:
        return (await fleet[-1].store.stats.read_stats()).get("qCreated", 0)

    for edge in fleet.edges:
        await edge.save()
    before = await created()
    for number in (0, 1):
        client = await fleet.client(number)
        await client.new()
        await client.close()
    await fleet[0].close()
    await fleet[1].close()
    fleet.edges.clear()
    await fleet.add()
    assert await created() == before + 2


async def test_redis_away_is_503(identity: Path, tmp_path: Path) -> None:
    server = start_server()
    fleet = Fleet(router_config(server.url, identity, tmp_path))
    fleet.config = replace(fleet.config, redis=replace(fleet.config.redis, command_timeout=0.2))
    await fleet.add()
    http = await start_http(fleet[0])
    async with aiohttp.ClientSession(f"http://127.0.0.1:{http.port}") as web:
        server.kill()
        for path in ("/status.json", "/metrics"):
            assert await get(web, path) == (503, "Redis does not answer")
        assert (await get(web, "/healthz"))[0] == 200
    await http.close()
    await fleet.close()
    discard(server)


async def test_headers_keep_everything_at_home(web: aiohttp.ClientSession) -> None:
    for path in ("/", "/weir.css", "/nothing"):
        async with web.get(path) as response:
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'") and "unsafe" not in policy
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Server"] == "weir"


async def test_the_page_has_all_it_needs_and_nothing_from_elsewhere(fleet: Fleet, web: aiohttp.ClientSession) -> None:
    code, page = await get(web, "/")
    assert code == 200
    assert fleet.address(0) in page
    assert "<svg" in page
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert not name.startswith(("http", "//")), name
        assert (await get(web, f"/{name}"))[0] == 200, name


async def test_what_is_off_is_not_there(fleet: Fleet, config: RouterConfig) -> None:
    fleet[1].config = replace(config, http=Http(port=0, listen="127.0.0.1", page=False, metrics=False))
    server = await start_http(fleet[1])
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as web:
        for path, code in (("/", 404), ("/metrics", 404), ("/metrics/edge", 404), ("/readyz", 200)):
            assert (await get(web, path))[0] == code, path
    await server.close()


async def test_metrics_have_a_port_of_their_own(fleet: Fleet, config: RouterConfig) -> None:
    """The page is for everybody, the metrics are for the machine's own network."""
    assert Http().metrics_listen == "127.0.0.1"
    ports = free_port(), free_port()
    edge = await fleet.add(http=Http(port=ports[0], listen="127.0.0.1", metrics_port=ports[1]))
    for port, found in (
        (ports[0], {"/", "/readyz", "/status.json"}),
        (ports[1], {"/metrics", "/metrics/edge", "/readyz"}),
    ):
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as web:
            for path in ("/", "/metrics", "/metrics/edge", "/readyz"):
                assert (await get(web, path))[0] == (200 if path in found else 404), (port, path)
    fleet.edges.remove(edge)
    await edge.close()
    for port in ports:
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this system has no IPv6")
@pytest.mark.parametrize("listen", ["", "0.0.0.0", "::"])
async def test_the_page_listens_on_every_address(fleet: Fleet, config: RouterConfig, listen: str) -> None:
    fleet[0].config = replace(config, http=Http(port=0, listen=listen, metrics_port=0))
    server = await start_http(fleet[0])
    for host in ("127.0.0.1", "[::1]"):
        async with aiohttp.ClientSession(f"http://{host}:{server.port}") as web:
            assert (await get(web, "/healthz"))[0] == 200, host
    await server.close()


def page_of(information: Information, **changes: object) -> str:
    config = replace(RouterConfig(), information=information, **changes)  # type: ignore[arg-type]
    return render_page(config, "smp://x@h", "1")


def test_everything_the_operator_publishes_is_shown() -> None:
    page = page_of(
        Information(
            source_code="https://example.org/source",
            usage_conditions="https://example.org/terms",
            condition_amendments="https://example.org/amendments",
            server_country="DE",
            operator="Example & Co",
            operator_country="FR",
            website="https://example.org",
            admin_simplex="simplex:/contact#/?v=2",
            admin_email="admin@example.org",
            admin_pgp="https://example.org/key",
            admin_pgp_fingerprint="AA BB",
            complaints_email="abuse@example.org",
            hosting="Hoster",
            hosting_country="NL",
            hosting_type="dedicated",
        )
    )
    for part in (
        '<a href="https://example.org/source" rel="noopener noreferrer">https://example.org/source</a>',
        "Example &amp; Co (FR)",
        '<a href="simplex:/contact#/?v=2" rel="noopener noreferrer">SimpleX</a>',
        '<a href="mailto:admin@example.org" rel="noopener noreferrer">admin@example.org</a>',
        ">PGP</a> <code>AA BB</code>",
        "Hoster (NL)",
        "<dd>dedicated</dd>",
        "amendments: ",
        "abuse@example.org",
        "<dd>DE</dd>",
    ):
        assert part in page, part


def test_nothing_published_is_said() -> None:
    assert "published nothing about this server" in page_of(Information())
    assert "not published by the operator" in page_of(Information())


def test_what_the_operator_writes_is_text_and_not_markup() -> None:
    page = page_of(Information(source_code="javascript:alert(1)", operator="<script>alert(1)</script>"))
    assert "<script>alert" not in page
    assert 'href="javascript:' not in page


@pytest.mark.parametrize(
    ("auth", "says"),
    [
        (Auth(), "open to everybody"),
        (Auth(create_password="hush"), "with a password"),
        (Auth(new_queues=False), "not allowed"),
    ],
)
def test_who_may_create_queues(auth: Auth, says: str) -> None:
    page = page_of(Information(), auth=auth)
    assert f"<dd>{says}</dd>" in page
    assert "hush" not in page
