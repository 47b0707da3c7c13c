"""The numbers that an SMP edge brings to its rollups: answers, counters, times, and services by their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from weir.router.router import Shared
from weir.router.store.store import Store
from weir.runtime.rollup_source import Source
from weir.telemetry.rollups.fields import EVENTS, OTHER
from weir.telemetry.rollups.histogram import Histogram
from weir.telemetry.rollups.record import ServiceRollup, add_up, is_label

if TYPE_CHECKING:
    from weir.runtime.edge import Edge

_GAUGES = (
    "subscriptions",
    "service_subscriptions",
    "service_queues",
    "ntf_subscriptions",
    "ntf_service_queues",
    "deferred",
    "outgoing_bytes",
)
_HISTOGRAMS = ("send_stored", "send_msg", "msg_ack", "subs_soks", "subs_alls", "fold_size")


class SmpSource(Source):
    program = "smp"
    stored: ClassVar[Mapping[str, str]] = {
        "fleet_queues": "queues",
        "fleet_messages": "messages",
        "fleet_notifiers": "notifiers",
        "fleet_notifications": "notifications",
        "fleet_rcv_services": "rcv_services",
        "fleet_ntf_services": "ntf_services",
        "fleet_rcv_service_queues": "rcv_service_queues",
        "fleet_ntf_service_queues": "ntf_service_queues",
        "fleet_active_queues": "queues",
        "fleet_active_ntf": "notifiers",
    }

    def __init__(self, edge: Edge[Any, Any], store: Store, router: Shared) -> None:
        super().__init__(edge, store, store.stats)
        self._registry = store.registry
        self._router = router
        self._labels: dict[bytes, str] = {}

    def answers(self) -> Mapping[str, int]:
        return self._router.answers.totals()

    def events(self) -> Mapping[str, int]:
        declared = EVENTS[self.program]
        return {name: count for name, count in self._router.stats.totals().items() if name in declared}

    def histograms(self) -> Mapping[str, Histogram]:
        return {name: getattr(self._router.stats, name) for name in _HISTOGRAMS}

    def program_gauges(self) -> Mapping[str, int]:
        gauges = self._router.gauges()
        return {name: gauges[name] for name in _GAUGES}

    def take_services(self) -> tuple[ServiceRollup, ...]:
        """The use of services since the last call. Services with the same label are one, and those without are too.

        A service that has no session here any more is forgotten.
        """
        services = self._router.stats.services.by_id
        sessions: Counter[bytes] = Counter()
        queues: Counter[bytes] = Counter()
        connected = set()
        for session in self._router.clients.values():
            service = session.service
            if service is None or session.use is None:
                continue
            connected.add(service.service_id)
            if session.subscriptions.epoch is not None:
                sessions[service.service_id] += 1
                queues[service.service_id] += session.subscriptions.totals.count
        by_label: dict[tuple[str, str], list[ServiceRollup]] = {}
        for service_id, use in list(services.items()):
            label = self._labels.get(service_id, OTHER)
            drift, delivered, alls = use.take()
            rollup = ServiceRollup(
                label, use.role, sessions[service_id], queues[service_id], drift, delivered, alls.buckets()
            )
            by_label.setdefault((label, use.role), []).append(rollup)
            if service_id not in connected:
                del services[service_id]
        added = (replace(add_up(same), label=label) for (label, _), same in by_label.items())
        return tuple(s for s in added if s.sessions or s.delivered or s.alls or any(s.drift.values()))

    async def refresh(self) -> dict[str, int]:
        labels = await self._registry.labels(list(self._router.stats.services.by_id))
        self._labels = {service_id: label for service_id, label in labels.items() if is_label(label)}
        return await super().refresh()
