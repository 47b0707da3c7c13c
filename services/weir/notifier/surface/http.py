"""The NTF router over HTTP: page, status and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import weir
from weir.notifier.surface.metrics import OUTCOMES, PROVIDERS, render_fleet
from weir.notifier.surface.page import render_page
from weir.notifier.surface.servers import ServerInfo
from weir.notifier.surface.view import OUTAGE, EdgeView, NtfFleet
from weir.surface.edge import site_of
from weir.surface.fleet import FleetNumbers, memory_problems
from weir.surface.http import Site
from weir.telemetry.metrics import median_ms

_NAMES = {
    "apns_prod": "APNs, production",
    "apns_dev": "APNs, sandbox",
    "apns_test": "test",
    "web_push": "Web Push",
}


def site(edge: EdgeView) -> Site:
    return site_of(edge, _Numbers(edge), render_page(edge.config, edge.address, weir.__version__), OUTAGE)


class _Numbers:
    def __init__(self, edge: EdgeView) -> None:
        self._edge = edge
        self._fleet = NtfFleet(edge)

    async def status(self) -> Mapping[str, Any]:
        numbers, servers = await self._fleet.numbers(), await self._fleet.servers()
        counts = numbers.counts
        return {
            "edges": len(numbers.edges),
            "connections": numbers.total("clients"),
            "tokens": counts.get("tokens", 0),
            "subscriptions": counts.get("subscriptions", 0),
            "servers": numbers.total("smp_servers"),
            "subscribed": numbers.total("smp_servers_subscribed"),
            "pushes_waiting": sum(numbers.total(f"push_waiting_{provider}") for provider in PROVIDERS),
            "pushed": numbers.stats.get("ntfDelivered", 0),
            "push_ms": median_ms("pushMs", numbers.stats) or 0,
            "pushes": list(pushes(numbers)),
            "ready": self._edge.ready,
            "problems": [
                *self._edge.store.failures.recent(),
                *memory_problems(numbers.redis, "devices get errors"),
                *(_problem(server) for server in servers if not server.subscribed),
            ],
            "own_servers": [_shown(server) for server in servers],
            "time": numbers.taken_at,
        }

    async def metrics(self) -> str:
        numbers, servers = await self._fleet.numbers(), await self._fleet.servers()
        return render_fleet(numbers.stats, numbers.counts, numbers.edges, numbers.redis, servers, weir.__version__)


def pushes(numbers: FleetNumbers) -> Iterator[dict[str, Any]]:
    """A row for each provider that has sent a push, or has one to send."""
    for provider in PROVIDERS:
        row = {outcome: numbers.stats.get(f"pushes_{provider}_{outcome}", 0) for outcome in OUTCOMES}
        row["waiting"] = numbers.total(f"push_waiting_{provider}")
        if any(row.values()):
            yield {"provider": _NAMES[provider], **row}


def _problem(server: ServerInfo) -> str:
    return f"{server.name} is not subscribed{f' ({server.problem})' if server.problem else ''}."


def _shown(server: ServerInfo) -> dict[str, Any]:
    return {
        "server": server.name,
        "subscribed": server.subscribed,
        "since": _utc(server.since),
        "count": server.count,
        "drift": server.drift,
        "last_notification": _utc(server.last),
    }


def _utc(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
