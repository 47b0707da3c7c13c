"""The common part of every program's metrics: one edge's own numbers, and sums over edges."""

import re

import pytest

from weir.telemetry.metrics import median_ms, render_edge, sum_edges

EDGES = {
    "one": {"clients": 3, "sockets_accepted": 10, "sockets_closed": 6, "handshakes": 1, "folds": 1, "pending_max": 4},
    "two": {"clients": 5, "sockets_accepted": 5, "sockets_closed": 0, "subscriptions": 8, "pending_max": 9},
}


def sample(text: str, series: str) -> float:
    match = re.search(rf"^{re.escape(series)} (\S+)$", text, re.MULTILINE)
    assert match, f"no {series} in\n{text}"
    return float(match[1])


def test_one_edge_speaks_for_itself() -> None:
    text = render_edge({"clients": 3, "whatever": 4}, {"msgSent": 2}, ready=False, uptime=61.7, version="0.1.0")
    assert sample(text, "weir_edge_clients") == 3
    assert sample(text, "weir_edge_whatever") == 4
    assert sample(text, "weir_edge_ready") == 0
    assert sample(text, "weir_edge_uptime_seconds") == 61
    assert sample(text, 'weir_edge_events{event="msgSent"}') == 2
    assert sample(text, "weir_edge_rss_bytes") > 1 << 20


def test_sum_edges() -> None:
    assert sum_edges([]) == {}
    assert sum_edges(EDGES.values())["clients"] == 8


def test_a_maximum_is_not_added_up() -> None:
    assert sum_edges(EDGES.values())["pending_max"] == 9


@pytest.mark.parametrize(
    ("hits", "median"),
    [
        ({}, None),
        ({"50": 1}, 50),
        ({"50": 9, "100": 1}, 50),
        ({"50": 1, "100": 2, "1000": 1}, 100),
        ({"1000": 3, "50": 2}, 1000),
    ],
)
def test_the_median_of_a_histogram(hits: dict[str, int], median: int | None) -> None:
    stats = {f"pushMs_{bound}": count for bound, count in hits.items()} | {"pushMsSum": 12345, "pushes_x": 7}
    assert median_ms("pushMs", stats) == median
