"""The numbers that an NTF edge brings to its rollups: answers, counters, the time to a push, and its SMP servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from weir.notifier.notifier import Shared
from weir.notifier.push.dispatcher import Dispatcher
from weir.notifier.stats import Stats
from weir.notifier.store.store import Store
from weir.notifier.subscriber.subscriber import Subscriber
from weir.runtime.rollup_source import Source
from weir.telemetry.rollups.fields import EVENTS
from weir.telemetry.rollups.histogram import Histogram

if TYPE_CHECKING:
    from weir.runtime.edge import Edge


class NtfSource(Source):
    program = "ntf"
    stored: ClassVar[Mapping[str, str]] = {
        "fleet_tokens": "tokens",
        "fleet_subscriptions": "subscriptions",
        "fleet_active_tokens": "tokens",
        "fleet_active_subscriptions": "subscriptions",
    }

    def __init__(
        self,
        edge: Edge[Any, Any],
        store: Store,
        router: Shared,
        stats: Stats,
        dispatcher: Dispatcher,
        subscriber: Subscriber,
    ) -> None:
        super().__init__(edge, store, store.stats)
        self._router = router
        self._stats = stats
        self._dispatcher = dispatcher
        self._subscriber = subscriber

    def answers(self) -> Mapping[str, int]:
        return self._router.answers.totals()

    def events(self) -> Mapping[str, int]:
        """Counters by host are added up: a record names no host."""
        declared = EVENTS[self.program]
        stats, subscriber = self._stats, self._subscriber.stats
        counted = {name: n for name, n in (stats.totals() | subscriber.totals()).items() if name in declared}
        by_host = {
            "ntfReceivedOwn": subscriber.ntfReceivedOwn,
            "ntfReceivedAuthOwn": subscriber.ntfReceivedAuthOwn,
            "ntfDeliveredOwn": stats.ntfDeliveredOwn,
            "ntfFailedOwn": stats.ntfFailedOwn,
        }
        return counted | {name: sum(hosts.values()) for name, hosts in by_host.items()}

    def histograms(self) -> Mapping[str, Histogram]:
        return {"nmsg_push": self._stats.nmsg_push}

    def program_gauges(self) -> Mapping[str, int]:
        servers = self._subscriber.numbers()
        return {
            "ntf_queue_waiting": self._dispatcher.waiting,
            "smp_servers_owned": servers["smp_servers"],
            "smp_servers_active": servers["smp_servers_subscribed"],
        }
