"""The section of a configuration about logs and traces, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass

from weir.config import kinds
from weir.config.kinds import setting


@dataclass(frozen=True)
class Telemetry:
    log_level: str = setting(
        kinds.choice("debug", "info", "warning", "error"), "info", "lowest severity that is logged"
    )
    log_format: str = setting(kinds.choice("text", "json"), "text", "format of log lines")
    traces: str | None = setting(
        kinds.TEXT, None, "receiver of spans: http(s)://collector:4318 (OTLP), zipkin+http://host:9411; unset: off"
    )
    sample_ratio: float = setting(kinds.number(0, 1), 0.01, "fraction of commands that are traced")
    trace_sessions: str = setting(
        kinds.choice("off", "services", "all"), "off", "sessions of which every command is traced"
    )
