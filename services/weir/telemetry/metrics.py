"""Metrics as text for Prometheus: the parts that every program uses.

Inputs are plain numbers by name. A program's own tables name its metrics; the SMP router's are in
router/surface/metrics.py.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from weir.telemetry.errors import ERRORS

Numbers = Mapping[str, int]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One metric family; `samples` are (labels, name of the number)."""

    name: str
    kind: str
    text: str
    samples: tuple[tuple[str, str], ...]


# Redis as an edge sees it: the sum of all masters.
REDIS = tuple(
    Metric(f"weir_redis_{name}", kind, text, (("", name),))
    for name, kind, text in (
        ("up", "gauge", "1 when Redis answers."),
        ("memory_used_bytes", "gauge", "Memory in use."),
        ("memory_max_bytes", "gauge", "Memory it may use; 0: no limit."),
        ("connected_clients", "gauge", "Connections."),
        ("commands", "counter", "Commands processed."),
        ("cpu_seconds", "counter", "CPU time, user and system."),
        ("keys", "gauge", "Keys."),
        ("aof_bytes", "gauge", "Size of the append-only files."),
        ("replicas", "gauge", "Replicas connected."),
        ("evicted_keys", "counter", "Keys evicted: must stay 0."),
    )
)

ENDED_CONNECTIONS = Metric(
    "weir_connections_ended",
    "counter",
    "Connections that an edge has ended. refused: [transport] max_clients, file descriptors, or the edge stops. "
    "crowded_out: half_open. timed_out: handshake_timeout. failed: an error in the handshake. stalled: send_timeout.",
    tuple(
        (f'{{reason="{reason}"}}', f"connections_{reason}")
        for reason in ("refused", "crowded_out", "timed_out", "failed", "stalled")
    ),
)


def render_edge(
    gauges: Numbers, stats: Numbers, *, ready: bool, uptime: float, version: str, redis_errors: Numbers | None = None
) -> str:
    """The metrics of this process alone: present gauges and counters since the start, failures of Redis by kind."""
    lines = gauge("weir_edge_ready", "1 when this edge takes clients.", int(ready))
    lines += gauge("weir_edge_uptime_seconds", "Time since its start.", int(uptime))
    lines += gauge("weir_edge_info", "This software.", 1, f'{{version="{version}"}}')
    for name, value in sorted({**gauges, **process_numbers()}.items()):
        lines += gauge(f"weir_edge_{name}", f"{name.replace('_', ' ')}, this edge.", value)
    if stats:
        lines += [
            "# HELP weir_edge_events Events counted by this edge since its start.",
            "# TYPE weir_edge_events counter",
        ]
        lines += [f'weir_edge_events{{event="{name}"}} {value}' for name, value in sorted(stats.items())]
    lines += [
        "# HELP weir_redis_errors_total Commands that Redis failed, as this edge saw it since its start.",
        "# TYPE weir_redis_errors_total counter",
    ]
    lines += [
        f'weir_redis_errors_total{{kind="{kind}"}} {count}' for kind, count in sorted((redis_errors or {}).items())
    ]
    lines += [
        "# HELP weir_errors_logged_total Errors in the log of this edge since its start.",
        "# TYPE weir_errors_logged_total counter",
    ]
    lines += [
        f'weir_errors_logged_total{{logger="{name}"}} {count}' for name, count in sorted(ERRORS.by_logger.items())
    ]
    return "\n".join(lines) + "\n"


def process_numbers() -> dict[str, int]:
    """Memory and CPU of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {"rss_bytes": pages * resource.getpagesize(), "cpu_seconds": int(time.process_time())}


def sum_edges(edges: Iterable[Numbers]) -> dict[str, int]:
    total: dict[str, int] = {}
    for gauges in edges:
        for name, value in gauges.items():
            total[name] = max(total.get(name, 0), value) if name.endswith("_max") else total.get(name, 0) + value
    return total


def family(metric: Metric, numbers: Mapping[str, float]) -> list[str]:
    lines = [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}"]
    lines += [f"{metric.name}{labels} {numbers.get(number, 0)}" for labels, number in metric.samples]
    return lines


def gauge(name: str, text: str, value: int, labels: str = "") -> list[str]:
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge", f"{name}{labels} {value}"]


def median_ms(number: str, stats: Numbers) -> int | None:
    """The upper bound of the bucket that has the median of a histogram, in milliseconds. None: nothing was counted."""
    buckets = _buckets(number, stats)
    left = sum(hits for _, hits in buckets) / 2
    for milliseconds, hits in buckets:
        left -= hits
        if left <= 0:
            return milliseconds
    return None


def _buckets(number: str, stats: Numbers) -> list[tuple[int, int]]:
    """(upper bound in ms, hits) of a histogram."""
    return sorted((int(k[len(number) + 1 :]), v) for k, v in stats.items() if k.startswith(number + "_"))


def histogram(name: str, text: str, number: str, stats: Numbers) -> list[str]:
    """A histogram in seconds from counters `<number>_<upper bound in ms>` and `<number>Sum`."""
    buckets = _buckets(number, stats)
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    below = 0
    for milliseconds, hits in buckets:
        below += hits
        lines.append(f'{name}_bucket{{le="{milliseconds / 1000:g}"}} {below}')
    lines.append(f'{name}_bucket{{le="+Inf"}} {below}')
    return [*lines, f"{name}_sum {stats.get(number + 'Sum', 0) / 1000:g}", f"{name}_count {below}"]
