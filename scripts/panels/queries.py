"""A panel of a dashboard, and the Prometheus queries that panels are made of.

Every edge's /metrics reports the totals of the fleet, so a fleet panel takes the max() over edges. /metrics/edge and
the operator's /metrics report one process.
"""

from __future__ import annotations

from typing import NamedTuple

S = "simplex_smp_"  # the reference server's names
SELECT = '{namespace=~"$namespace",job=~"$job"}'


class Panel(NamedTuple):
    title: str
    queries: tuple[tuple[str, str], ...]  # (expression, legend)
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    text: str = ""
    stack: bool = False


def fleet(metric: str, labels: str = "") -> str:
    return f"max by (namespace, job{labels and ', ' + labels}) ({metric}{SELECT})"


def rate(metric: str, labels: str = "") -> str:
    return f"max by (namespace, job{labels and ', ' + labels}) (rate({metric}{SELECT}[$__rate_interval]))"


def edge(metric: str) -> str:
    return f"sum by (pod) ({metric}{SELECT})"


def edge_rate(metric: str) -> str:
    return f"sum by (pod) (rate({metric}{SELECT}[$__rate_interval]))"


def quantile(share: float, metric: str) -> str:
    inner = f"max by (namespace, job, le) (rate({metric}_bucket{SELECT}[$__rate_interval]))"
    return f"histogram_quantile({share}, {inner})"


def number(title: str, expression: str, unit: str = "short", text: str = "") -> Panel:
    return Panel(title, ((expression, ""),), unit, "stat", 4, text)


def lines(title: str, *queries: tuple[str, str], unit: str = "short", text: str = "", stack: bool = False) -> Panel:
    return Panel(title, queries, unit, "timeseries", 8, text, stack)
