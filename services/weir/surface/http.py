"""HTTP beside the protocol: the page for people, /healthz and /readyz for the orchestrator, /metrics for Prometheus.

A program brings a `Site`: its state, its numbers and its page. An endpoint that the site leaves out answers 404.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from aiohttp import web

from weir.surface import page
from weir.surface.outage import Outage
from weir.surface.settings import Http
from weir.telemetry.errors import log_mistake
from weir.telemetry.metrics import CONTENT_TYPE

_log = logging.getLogger(__name__)

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


@dataclass(frozen=True)
class Site:
    """The endpoints of a program: state, page, numbers."""

    is_ready: Callable[[], bool]
    is_draining: Callable[[], bool]
    status: Callable[[], Awaitable[Mapping[str, Any]]]
    """/status.json, which the page reads every few seconds"""
    outage: Outage
    problems: Callable[[], Sequence[str]] = tuple
    """Sentences for the operator about what fails at present"""
    page: str | None = None
    """HTML"""
    metrics: Callable[[], Awaitable[str]] | None = None
    """/metrics: the numbers of the whole fleet"""
    edge_metrics: Callable[[], str] | None = None
    """/metrics/edge: the numbers of this process"""


class HttpServer:
    """One edge's HTTP listener."""

    def __init__(self, runner: web.AppRunner, port: int) -> None:
        self._runner = runner
        self.port = port

    async def close(self) -> None:
        await self._runner.cleanup()


async def serve_site(site: Site, sock: socket.socket) -> HttpServer:
    """Serve on a bound socket."""
    runner = web.AppRunner(make_app(site), access_log=None, handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    await web.SockSite(runner, sock).start()
    return HttpServer(runner, sock.getsockname()[1])


Bind = Callable[[str, int], socket.socket]
"""Binds a socket to an address and a port, beside other edges on this machine."""


async def serve_page(site: Site, http: Http, bind: Bind) -> HttpServer:
    """Serve the page and health, and the metrics if they have no port of their own."""
    if not http.page:
        site = replace(site, page=None)
    if http.metrics_port or not http.metrics:
        site = replace(site, metrics=None, edge_metrics=None)
    return await serve_site(site, bind(http.listen, http.port))


async def serve_metrics(site: Site, http: Http, bind: Bind) -> HttpServer:
    """Serve the metrics and health, on the port of the metrics."""
    return await serve_site(replace(site, page=None), bind(http.metrics_listen, http.metrics_port))


def make_app(site: Site) -> web.Application:
    app = web.Application(middlewares=[_answer_failures(site.outage)])
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz(site))
    app.router.add_get("/status.json", _status(site))
    if site.metrics is not None:
        app.router.add_get("/metrics", _fleet_metrics(site.metrics))
    if site.edge_metrics is not None:
        app.router.add_get("/metrics/edge", _edge_metrics(site.edge_metrics))
    if site.page is not None:
        app.router.add_get("/", _document(site.page))
        for name, kind in _ASSETS.items():
            app.router.add_get(f"/{name}", _asset(name, kind))
    return app


def _answer_failures(outage: Outage) -> Any:
    @web.middleware
    async def answer(request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(text=error.reason, status=error.status)
        except outage.errors:
            response = web.Response(text=outage.text, status=503)
        except Exception as error:
            log_mistake(_log, f"the HTTP request for {request.path} failed", error)
            response = web.Response(text="Internal Server Error", status=500)
        response.headers.update(_HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    return answer


async def _healthz(request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _readyz(site: Site) -> _Handler:
    async def readyz(request: web.Request) -> web.Response:
        problems = "".join(f"{sentence}\n" for sentence in site.problems())
        if site.is_ready():
            return web.Response(text=f"ready\n{problems}")
        state = "draining" if site.is_draining() else "not ready"
        return web.Response(text=f"{state}\n{problems}", status=503)

    return readyz


def _status(site: Site) -> _Handler:
    async def status(request: web.Request) -> web.Response:
        return web.json_response(await site.status())

    return status


def _fleet_metrics(render: Callable[[], Awaitable[str]]) -> _Handler:
    async def metrics(request: web.Request) -> web.Response:
        return _metrics(await render())

    return metrics


def _edge_metrics(render: Callable[[], str]) -> _Handler:
    async def metrics(request: web.Request) -> web.Response:
        return _metrics(render())

    return metrics


def _metrics(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})


def _document(html: str) -> _Handler:
    async def document(request: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    return document


def _asset(name: str, kind: str) -> _Handler:
    body = resources.files(page).joinpath(name).read_bytes()

    async def asset(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, headers={"Cache-Control": "max-age=3600"})

    return asset
