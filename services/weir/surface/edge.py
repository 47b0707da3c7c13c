"""An edge as every program shows it: page, health, metrics and control port."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import weir
from weir.surface.control.port import ControlPort
from weir.surface.http import Bind, HttpServer, Site, serve_metrics, serve_page
from weir.surface.outage import Outage
from weir.surface.settings import Control, Http
from weir.telemetry.metrics import render_edge


class Failures(Protocol):
    def recent(self) -> Sequence[str]: ...
    def totals(self) -> Mapping[str, int]: ...


class Store(Protocol):
    @property
    def failures(self) -> Failures: ...


class EdgeView(Protocol):
    """A program's own view adds its configuration and its store."""

    @property
    def store(self) -> Store: ...
    @property
    def address(self) -> str:
        """The router's address as clients use it."""

    @property
    def edge_id(self) -> str: ...
    @property
    def started_at(self) -> float: ...
    @property
    def ready(self) -> bool:
        """Whether new clients are welcome."""

    @property
    def draining(self) -> bool: ...
    def gauges(self) -> Mapping[str, int]:
        """Numbers of this process now, by name."""

    def counted(self) -> Mapping[str, int]:
        """Events of this process since its start, by the reference's stat names."""

    async def save(self) -> None:
        """Put what was counted into the store. Raises Unavailable."""

    async def report(self) -> None:
        """Save, unless that was asked for a moment ago."""

    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...


class FleetNumbers(Protocol):
    """The program's numbers of the whole fleet."""

    async def status(self) -> Mapping[str, Any]: ...
    async def metrics(self) -> str: ...


def site_of(edge: EdgeView, numbers: FleetNumbers, page: str, outage: Outage) -> Site:
    return Site(
        is_ready=lambda: edge.ready,
        is_draining=lambda: edge.draining,
        status=numbers.status,
        outage=outage,
        problems=edge.store.failures.recent,
        page=page,
        metrics=numbers.metrics,
        edge_metrics=lambda: edge_metrics(edge),
    )


def edge_metrics(edge: EdgeView) -> str:
    return render_edge(
        edge.gauges(),
        edge.counted(),
        ready=edge.ready,
        uptime=time.time() - edge.started_at,
        version=weir.__version__,
        redis_errors=edge.store.failures.totals(),
    )


E = TypeVar("E")


class Endpoints:
    """The servers of one edge beside its protocol."""

    def __init__(self) -> None:
        self.http_port: int | None = None
        self._servers: list[HttpServer | ControlPort] = []

    async def open(
        self,
        edge: E,
        site: Callable[[E], Site],
        http: Http,
        control: Control,
        start_control: Callable[[E], Awaitable[ControlPort]],
        bind: Bind,
    ) -> None:
        if http.port:
            page = await serve_page(site(edge), http, bind)
            self._servers.append(page)
            self.http_port = page.port
            if http.metrics and http.metrics_port:
                self._servers.append(await serve_metrics(site(edge), http, bind))
        if control.port:
            self._servers.append(await start_control(edge))

    async def close(self) -> None:
        for server in self._servers:
            await server.close()
