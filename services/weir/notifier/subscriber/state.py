"""The state of an SMP server's session, for the page and for metrics, without any id or key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from weir.runtime.counters import Counters


@dataclass(slots=True)
class SubscriberStats(Counters):
    """Counted since the start. `…Own` count by host, of the operator's own servers."""

    ntfReceived: int = 0
    ntfReceivedAuth: int = 0
    ntfReceivedOwn: dict[str, int] = field(default_factory=dict)
    ntfReceivedAuthOwn: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ServerState:
    """A server that this replica owns. Times are Unix times.

    Counts of a service are those of its subscription, counts of queues those subscribed to one by one.
    """

    name: str = ""  # the host of an own server; empty for all others
    needed: bool = False  # whether it has subscriptions, as far as is known
    connected: bool = False
    since: float | None = None  # when everything was subscribed to
    service: bool = False  # whether this session is a service's
    service_active: int = 0
    service_pending: int = 0
    queues_active: int = 0
    queues_pending: int = 0
    drift: int = 0  # how many queues the server has more (or, negative, fewer) than the store
    last_notification: float | None = None
    problem: str = ""  # why there is no connection: a word of the protocol

    @property
    def subscribed(self) -> bool:
        return self.since is not None

    @property
    def count(self) -> int:
        return self.service_active + self.queues_active

    def connect(self, service: bool) -> None:
        self.connected, self.service, self.problem = True, service, ""

    def disconnect(self, problem: str = "") -> None:
        """Active subscriptions are pending again."""
        self.service_pending += self.service_active
        self.queues_pending += self.queues_active
        self.service_active = self.queues_active = 0
        self.connected, self.service, self.since = False, False, None
        self.problem = problem

    def published(self) -> dict[str, str]:
        """The form in which other replicas see this state."""
        return {
            "name": self.name,
            "subscribed": str(int(self.subscribed)),
            "since": "" if self.since is None else str(int(self.since)),
            "service": str(int(self.service)),
            "count": str(self.count),
            "pending": str(self.service_pending + self.queues_pending),
            "drift": str(self.drift),
            "last": "" if self.last_notification is None else str(int(self.last_notification)),
            "problem": self.problem,
        }


def numbers(states: Iterable[ServerState]) -> dict[str, int]:
    """Gauges of one replica, for all servers that it owns."""
    found = dict.fromkeys(
        (
            "smp_servers",
            "smp_servers_subscribed",
            "smp_clients_own",
            "smp_clients_other",
            *(
                f"smp_{kind}_{status}_{what}_{whose}"
                for kind in ("service", "queues")
                for status in ("active", "pending")
                for what in ("servers", "subs")
                for whose in ("own", "other")
            ),
        ),
        0,
    )
    for state in states:
        whose = "own" if state.name else "other"
        found["smp_servers"] += state.needed
        found["smp_servers_subscribed"] += state.subscribed
        found[f"smp_clients_{whose}"] += state.connected
        for kind, status, count in (
            ("service", "active", state.service_active),
            ("service", "pending", state.service_pending),
            ("queues", "active", state.queues_active),
            ("queues", "pending", state.queues_pending),
        ):
            found[f"smp_{kind}_{status}_servers_{whose}"] += count > 0
            found[f"smp_{kind}_{status}_subs_{whose}"] += count
    return found
