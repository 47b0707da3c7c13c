"""HTTP without a router: whatever a site leaves out is 404, failures never show a client more than one line."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from weir.surface.http import Site, serve_site
from weir.surface.outage import Outage
from weir.transport.server import bind


class Away(Exception):
    pass


OUTAGE = Outage((Away,), "the database does not answer")


async def status() -> Mapping[str, Any]:
    return {"clients": 3}


def site(**changes: Any) -> Site:
    given: dict[str, Any] = {"is_ready": lambda: True, "is_draining": lambda: False, "status": status} | changes
    return Site(**given, outage=OUTAGE)


@asynccontextmanager
async def served(shown: Site) -> AsyncIterator[Callable[[str], Any]]:
    server = await serve_site(shown, bind("127.0.0.1", 0))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{server.port}") as web:

        async def get(path: str) -> tuple[int, str]:
            async with web.get(path) as response:
                return response.status, await response.text()

        yield get
    await server.close()


async def test_the_least_that_a_program_shows() -> None:
    async with served(site()) as get:
        assert await get("/healthz") == (200, "ok\n")
        assert await get("/readyz") == (200, "ready\n")
        assert await get("/status.json") == (200, '{"clients": 3}')
        for path in ("/", "/weir.css", "/metrics", "/metrics/edge"):
            assert (await get(path))[0] == 404, path


@pytest.mark.parametrize(("draining", "says"), [(True, "draining\n"), (False, "not ready\n")])
async def test_why_an_edge_is_not_ready(draining: bool, says: str) -> None:
    async with served(site(is_ready=lambda: False, is_draining=lambda: draining)) as get:
        assert await get("/readyz") == (503, says)
        assert await get("/healthz") == (200, "ok\n")


async def test_what_fails_at_present_is_told_with_the_state() -> None:
    async with served(site(problems=lambda: ["The disk is full.", "The database is slow."])) as get:
        assert await get("/readyz") == (200, "ready\nThe disk is full.\nThe database is slow.\n")
    async with served(site(is_ready=lambda: False, problems=lambda: ["The disk is full."])) as get:
        assert await get("/readyz") == (503, "not ready\nThe disk is full.\n")


async def test_all_that_a_program_may_show() -> None:
    async def metrics() -> str:
        return "fleet 1\n"

    async with served(site(page="<p>hello</p>", metrics=metrics, edge_metrics=lambda: "edge 1\n")) as get:
        assert await get("/") == (200, "<p>hello</p>")
        assert await get("/metrics") == (200, "fleet 1\n")
        assert await get("/metrics/edge") == (200, "edge 1\n")
        for name in ("weir.css", "weir.js", "weir.svg"):
            assert (await get(f"/{name}"))[0] == 200


async def test_an_outage_is_503_and_a_mistake_500(caplog: pytest.LogCaptureFixture) -> None:
    failures: asyncio.Queue[Exception] = asyncio.Queue()

    async def failing() -> Mapping[str, Any]:
        raise failures.get_nowait()

    async with served(site(status=failing)) as get:
        failures.put_nowait(Away())
        assert await get("/status.json") == (503, "the database does not answer")
        failures.put_nowait(KeyError("a secret"))
        assert await get("/status.json") == (500, "Internal Server Error")
    (line,) = caplog.messages
    assert line.startswith("the HTTP request for /status.json failed (KeyError in ") and "\n" not in caplog.text.strip()
