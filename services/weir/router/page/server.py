"""HTTP beside SMP: the page for people, /healthz and /readyz for the orchestrator, /metrics for Prometheus."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from importlib import resources

from aiohttp import web

import weir
from weir.router.page.html import render_page
from weir.router.view import EdgeView, Fleet
from weir.store.records import Unavailable
from weir.telemetry.metrics import CONTENT_TYPE, render_edge, render_fleet

log = logging.getLogger(__name__)

_ASSETS = {"weir.css": "text/css", "weir.js": "text/javascript", "weir.svg": "image/svg+xml"}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Server": "weir",
}
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HttpServer:
    """One edge's HTTP listener."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner = runner
        self.port = port

    async def close(self) -> None:
        await self._runner.cleanup()


async def start_http(edge: EdgeView, *, reuse_port: bool) -> HttpServer:
    runner = web.AppRunner(make_app(edge), access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    http = edge.config.http
    try:
        await web.TCPSite(runner, http.listen, http.port, reuse_port=reuse_port or None).start()
    except OSError:
        await runner.cleanup()
        raise
    return HttpServer(runner, runner.addresses[0][1])


def make_app(edge: EdgeView) -> web.Application:
    pages = _Pages(edge)
    app = web.Application(middlewares=[_headers])
    app.router.add_get("/healthz", pages.healthz)
    app.router.add_get("/readyz", pages.readyz)
    app.router.add_get("/status.json", pages.status)
    if edge.config.http.metrics:
        app.router.add_get("/metrics", pages.metrics)
        app.router.add_get("/metrics/edge", pages.edge_metrics)
    if edge.config.http.page:
        app.router.add_get("/", pages.index)
        for name, kind in _ASSETS.items():
            app.router.add_get(f"/{name}", _asset(name, kind))
    return app


@web.middleware
async def _headers(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = web.Response(text=error.reason, status=error.status)
    except Unavailable:
        response = web.Response(text="Redis does not answer", status=503)
    except Exception:
        log.exception("the page failed")
        response = web.Response(text="Internal Server Error", status=500)
    response.headers.update(_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _asset(name: str, kind: str) -> _Handler:
    body = resources.files(__package__).joinpath(name).read_bytes()

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})

    return handler


class _Pages:
    def __init__(self, edge: EdgeView) -> None:
        self._edge = edge
        self._fleet = Fleet(edge)
        self._page = render_page(edge.config, edge.address, weir.__version__)

    async def index(self, request: web.Request) -> web.Response:
        return web.Response(text=self._page, content_type="text/html")

    async def healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        if self._edge.ready:
            return web.Response(text="ready\n")
        return web.Response(text="draining\n" if self._edge.draining else "not ready\n", status=503)

    async def status(self, request: web.Request) -> web.Response:
        numbers = await self._fleet.numbers()
        counts, stats = numbers.counts, numbers.stats
        return web.json_response(
            {
                "edges": len(numbers.edges),
                "connections": numbers.total("clients"),
                "subscriptions": numbers.total("subscriptions") + numbers.total("service_queues"),
                "queues": counts.get("queues", 0),
                "messages": counts.get("messages", 0),
                "services": counts.get("rcv_services", 0) + counts.get("ntf_services", 0),
                "sent": stats.get("msgSent", 0),
                "received": stats.get("msgRecv", 0) + stats.get("msgRecvGet", 0),
                "folds": numbers.total("folds"),
                "ready": self._edge.ready,
                "time": numbers.taken_at,
            }
        )

    async def metrics(self, request: web.Request) -> web.Response:
        numbers = await self._fleet.numbers()
        ports = ",".join(str(port) for port in self._edge.config.transport.ports)
        text = render_fleet(numbers.stats, numbers.counts, numbers.edges, numbers.redis, ports, weir.__version__)
        return _metrics(text)

    async def edge_metrics(self, request: web.Request) -> web.Response:
        edge = self._edge
        uptime = time.time() - edge.started_at
        return _metrics(
            render_edge(edge.gauges(), edge.counted(), ready=edge.ready, uptime=uptime, version=weir.__version__)
        )


def _metrics(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})
