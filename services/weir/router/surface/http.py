"""The SMP router over HTTP: page, status and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import weir
from weir.router.surface.metrics import render_fleet
from weir.router.surface.page import render_page
from weir.router.surface.view import OUTAGE, EdgeView
from weir.surface.edge import site_of
from weir.surface.fleet import Fleet, memory_problems
from weir.surface.http import Site


def site(edge: EdgeView) -> Site:
    return site_of(edge, _Numbers(edge), render_page(edge.config, edge.address, weir.__version__), OUTAGE)


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
            "problems": [*self._edge.store.failures.recent(), *memory_problems(numbers.redis, "senders get errors")],
            "time": numbers.taken_at,
        }

    async def metrics(self) -> str:
        numbers = await self._fleet.numbers()
        ports = ",".join(str(port) for port in self._edge.config.transport.ports)
        return render_fleet(numbers.stats, numbers.counts, numbers.edges, numbers.redis, ports, weir.__version__)
