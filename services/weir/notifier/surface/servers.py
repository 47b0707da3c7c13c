"""The operator's own SMP servers, as the edges that own them have published their state (weir.notifier.subscriber)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Times are Unix times. Only own servers are named."""

    name: str
    subscribed: bool
    since: int | None
    service: bool
    count: int
    pending: int
    drift: int
    last: int | None
    problem: str

    @staticmethod
    def of_state(state: Mapping[str, str]) -> ServerInfo:
        """Read what `weir.notifier.subscriber.state.ServerState.published` has written."""
        return ServerInfo(
            state["name"],
            state.get("subscribed") == "1",
            _number(state.get("since")),
            state.get("service") == "1",
            _number(state.get("count")) or 0,
            _number(state.get("pending")) or 0,
            _number(state.get("drift")) or 0,
            _number(state.get("last")),
            state.get("problem", ""),
        )

    def of(self, kind: str, status: str) -> int:
        """Subscriptions of this `kind` ("service", "queues") and status ("active", "pending")."""
        if self.service is not (kind == "service"):
            return 0
        return self.count if status == "active" else self.pending


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def own_servers(states: Iterable[Mapping[str, str]]) -> list[ServerInfo]:
    """The own servers by name. A server whose state nobody has published yet is left out."""
    return sorted((ServerInfo.of_state(state) for state in states if state.get("name")), key=lambda server: server.name)
