"""The dispatcher's view of a push service."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping

from weir.notifier.outcome import Delivered, Outcome
from weir.notifier.store.records import Push


class Provider(ABC):
    """One push service, or all services of one protocol.

    A provider bounds the time of `send`: the claim of a push must outlive it.
    """

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()
        """Answers by status and reason, from a closed vocabulary."""

    def lane(self, push: Push) -> str:
        """The server that gets this push. A lane is bounded: one slow server leaves room for others."""
        return ""

    def paused(self) -> float:
        """Seconds until the provider takes any push again; 0: it does now."""
        return 0.0

    def wait(self, push: Push) -> float:
        """Seconds until the push's lane takes pushes again; 0: it does now."""
        return self.paused()

    @abstractmethod
    async def send(self, push: Push) -> Outcome: ...

    async def close(self) -> None:
        """End connections. Pushes in progress fail."""
        return

    def numbers(self) -> Mapping[str, int]:
        """Gauges: open connections, and servers that pushes are held back from."""
        return {}


class Accepting(Provider):
    """The null and the test provider: every push is delivered, to nobody."""

    async def send(self, push: Push) -> Outcome:
        return Delivered()
