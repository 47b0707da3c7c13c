"""The sections of a configuration that belong to the life of an edge, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import Kind, setting
from weir.config.schema import Places
from weir.telemetry.rollups.record import is_name


@dataclass(frozen=True)
class InactiveClients:
    disconnect: bool = setting(kinds.BOOL, True, "disconnect silent clients without subscriptions")
    ttl: float = setting(kinds.DURATION, 6 * 3600.0, "time without a command after which a client is disconnected")
    check_interval: float = setting(kinds.DURATION, 3600.0, "interval between checks for silent clients")


@dataclass(frozen=True)
class Drain:
    grace: float = setting(kinds.DURATION, 30.0, "time that an edge has to stop after SIGTERM")
    rate: int = setting(kinds.integer(1), 500, "clients per second that a stopping edge disconnects")


def _read_name(raw: object) -> str:
    if not isinstance(raw, str) or (raw and not is_name(raw)):
        raise ValueError("expected up to 63 letters, digits, dots, hyphens and underscores; or nothing")
    return raw


@dataclass(frozen=True)
class Rollups:
    """Each edge appends one record of an interval to a stream in Redis (docs/pipeline.md)."""

    interval: float = setting(
        kinds.DURATION, 60.0, "an edge publishes a rollup of its counters after each interval; 0: no rollups"
    )
    keep: float = setting(kinds.DURATION, 7 * 86400.0, "time that rollups stay in Redis for the data pipeline")
    router: str = setting(Kind("name", _read_name), "", "name of this router in its rollups; nothing: smp or ntf")


def check_rollups(rollups: Rollups, places: Places) -> list[Problem]:
    problems = []
    if 0 < rollups.interval < 1:
        problems.append(places.problem("rollups", "interval", "interval: at least 1s; 0: no rollups"))
    if rollups.keep < max(60, rollups.interval):
        problems.append(places.problem("rollups", "keep", "keep: at least 1m, and at least an interval"))
    return problems
