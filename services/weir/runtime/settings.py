"""The sections of a configuration that belong to the life of an edge, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass

from weir.config import kinds
from weir.config.kinds import setting


@dataclass(frozen=True)
class InactiveClients:
    disconnect: bool = setting(kinds.BOOL, True, "disconnect silent clients without subscriptions")
    ttl: float = setting(kinds.DURATION, 6 * 3600.0, "time without a command after which a client is disconnected")
    check_interval: float = setting(kinds.DURATION, 3600.0, "interval between checks for silent clients")


@dataclass(frozen=True)
class Drain:
    grace: float = setting(kinds.DURATION, 30.0, "time that an edge has to stop after SIGTERM")
    rate: int = setting(kinds.integer(1), 500, "clients per second that a stopping edge disconnects")
