"""The SMP router over HTTP: page, status and metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import weir
from weir.router.surface.metrics import render_fleet
from weir.router.surface.page import render_page
from weir.router.surface.view import OUTAGE, EdgeView, Fleet, memory_problems
from weir.surface.http import HttpServer, Site, serve_site
from weir.telemetry.metrics import render_edge
from weir.transport.server import bind, every_host


async def start_http(edge: EdgeView) -> HttpServer:
    """The page and health, and the metrics if they have no port of their own."""
    http = edge.config.http
    page = render_page(edge.config, edge.address, weir.__version__) if http.page else None
    site = _site(edge, page, shows_metrics=http.metrics and not http.metrics_port)
    return await serve_site(site, bind(every_host(http.listen), http.port, reuse_port=True))


async def start_metrics(edge: EdgeView) -> HttpServer:
    """The metrics and health, on the port of the metrics."""
    http = edge.config.http
    site = _site(edge, None, shows_metrics=True)
    return await serve_site(site, bind(every_host(http.metrics_listen), http.metrics_port, reuse_port=True))


def _site(edge: EdgeView, page: str | None, *, shows_metrics: bool) -> Site:
    numbers = _Numbers(edge)
    return Site(
        is_ready=lambda: edge.ready,
        is_draining=lambda: edge.draining,
        status=numbers.status,
        outage=OUTAGE,
        problems=edge.store.failures.recent,
        page=page,
        metrics=numbers.metrics if shows_metrics else None,
        edge_metrics=numbers.edge_metrics if shows_metrics else None,
    )


class _Numbers:
    def __init__(self, edge: EdgeView) -> None:
        self._edge = edge
        self._fleet = Fleet(edge)

    async def status(self) -> Mapping[str, Any]:
        numbers = await self._fleet.numbers()
        counts, stats = numbers.counts, numbers.stats
        return {
            "edges": len(numbers.edges),
            "connections": numbers.total("clients"),
            "subscriptions": numbers.total("subscriptions") + numbers.total("service_queues"),
            "queues": counts.get("queues", 0),
            "messages": counts.get("messages", 0),
            "services": counts.get("rcv_services", 0) + counts.get("ntf_services", 0),
            "sent": stats.get("msgSent", 0),
            "rate": numbers.total("sent_per_1000s") / 1000,
            "received": stats.get("msgRecv", 0) + stats.get("msgRecvGet", 0),
            "folds": numbers.total("folds"),
            "ready": self._edge.ready,
            "problems": [*self._edge.store.failures.recent(), *memory_problems(numbers.redis)],
            "time": numbers.taken_at,
        }

    async def metrics(self) -> str:
        numbers = await self._fleet.numbers()
        ports = ",".join(str(port) for port in self._edge.config.transport.ports)
        return render_fleet(numbers.stats, numbers.counts, numbers.edges, numbers.redis, ports, weir.__version__)

    def edge_metrics(self) -> str:
        edge = self._edge
        uptime = time.time() - edge.started_at
        return render_edge(
            edge.gauges(),
            edge.counted(),
            ready=edge.ready,
            uptime=uptime,
            version=weir.__version__,
            redis_errors=edge.store.failures.totals(),
        )
