"""Counters of one edge, under the reference's names. The store adds the counts of all edges up.

The subscriber counts received notifications itself (weir.notifier.subscriber.state).

Tokens of the null provider are for tests of the router: nothing that concerns them is counted (`counts`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weir.runtime.counters import Counters, add_ms
from weir.telemetry.rollups.histogram import Histogram
from weir.wire.ntf.types import PushProvider


def counts(provider: PushProvider) -> bool:
    """Whether events of this provider's tokens are counted."""
    return provider is not PushProvider.APNS_NULL


@dataclass(slots=True)
class Active:
    """Tokens and notifiers in use since the last report."""

    tokens: set[bytes] = field(default_factory=set)
    notifiers: set[bytes] = field(default_factory=set)

    def take(self) -> tuple[set[bytes], set[bytes]]:
        """Return what was in use. The sets stay the same objects."""
        taken = set(self.tokens), set(self.notifiers)
        self.tokens.clear()
        self.notifiers.clear()
        return taken

    def give_back(self, tokens: set[bytes], notifiers: set[bytes]) -> None:
        self.tokens |= tokens
        self.notifiers |= notifiers


@dataclass(slots=True)
class Stats(Counters):
    tknCreated: int = 0
    tknVerified: int = 0
    tknDeleted: int = 0
    tknReplaced: int = 0
    subCreated: int = 0
    subDeleted: int = 0
    ntfDelivered: int = 0
    ntfFailed: int = 0
    ntfCronDelivered: int = 0
    ntfCronFailed: int = 0
    ntfVrfQueued: int = 0
    ntfVrfDelivered: int = 0
    ntfVrfFailed: int = 0
    ntfVrfInvalidTkn: int = 0
    # The same counters for each of the operator's own SMP servers, by host.
    ntfDeliveredOwn: dict[str, int] = field(default_factory=dict)
    ntfFailedOwn: dict[str, int] = field(default_factory=dict)
    # Weir's own counters.
    pushes: dict[str, int] = field(default_factory=dict)  # "provider_outcome" → pushes
    pushMs: dict[int, int] = field(default_factory=dict)  # bucket of milliseconds → pushes that a provider answered
    pushMsSum: int = 0
    pushLimited: dict[str, int] = field(default_factory=dict)  # provider → pushes refused because of their rate
    nmsg_push: Histogram = field(default_factory=Histogram)  # for rollups, in µs

    def count(self, provider: PushProvider, name: str) -> None:
        """Add one to a counter, unless the provider's tokens are not counted."""
        if counts(provider):
            setattr(self, name, getattr(self, name) + 1)

    def own(self, host: str, name: str) -> None:
        """Add one to a counter of one of the operator's own SMP servers, e.g. "ntfDelivered"."""
        by_host: dict[str, int] = getattr(self, name + "Own")
        by_host[host] = by_host.get(host, 0) + 1

    def pushed(self, provider: PushProvider, outcome: str, seconds: float) -> None:
        """Count a provider's answer, and the time from sending the push to the answer."""
        if not counts(provider):
            return
        key = f"{provider.name.lower()}_{outcome}"
        self.pushes[key] = self.pushes.get(key, 0) + 1
        add_ms(self.pushMs, seconds)
        self.pushMsSum += round(seconds * 1000)

    def notified(self, provider: PushProvider, seconds: float) -> None:
        """Count the time from NMSG to the provider's answer, of a push that was sent at once."""
        if counts(provider):
            self.nmsg_push.observe(seconds * 1e6)
