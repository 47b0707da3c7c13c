"""The operator's own metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

REGISTRY = CollectorRegistry()

RECONCILES = Counter(
    "weir_operator_reconciles", "Objects looked after, by outcome", ["kind", "result"], registry=REGISTRY
)
RECONCILE_SECONDS = Histogram(
    "weir_operator_reconcile_seconds",
    "Time one look took",
    ["kind"],
    buckets=(0.005, 0.02, 0.1, 0.5, 1, 5, 20),
    registry=REGISTRY,
)
API_REQUESTS = Counter("weir_operator_api_requests", "Requests to the API server", ["verb", "code"], registry=REGISTRY)
OBJECTS = Gauge("weir_operator_objects", "Objects looked after", ["kind", "ready"], registry=REGISTRY)
CERTIFICATE_EXPIRY = Gauge(
    "weir_operator_certificate_expiry_seconds",
    "Time until the online certificate ends",
    ["namespace", "name"],
    registry=REGISTRY,
)
DRIFT_REPAIRS = Counter(
    "weir_operator_drift_repairs", "Children put back as they should be", ["kind"], registry=REGISTRY
)
LEADER = Gauge("weir_operator_leader", "Whether this replica works", registry=REGISTRY)
QUEUE_DEPTH = Gauge("weir_operator_queue_depth", "Objects waiting for a look", registry=REGISTRY)


_counters: list[Callable[[], None]] = []


def count_with(counter: Callable[[], None]) -> None:
    """Called before the next page is made; the last one given counts."""
    _counters[:] = [counter]


def render() -> bytes:
    for counter in _counters:
        counter()
    return generate_latest(REGISTRY)
