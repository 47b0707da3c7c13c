"""The operator's own metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

REGISTRY = CollectorRegistry()

RECONCILES = Counter("weir_operator_reconciles", "Reconciliations, by outcome", ["kind", "result"], registry=REGISTRY)
RECONCILE_SECONDS = Histogram(
    "weir_operator_reconcile_seconds",
    "Time one reconciliation took",
    ["kind"],
    buckets=(0.005, 0.02, 0.1, 0.5, 1, 5, 20),
    registry=REGISTRY,
)
API_REQUESTS = Counter("weir_operator_api_requests", "Requests to the API server", ["verb", "code"], registry=REGISTRY)
OBJECTS = Gauge("weir_operator_objects", "Custom objects, by kind and readiness", ["kind", "ready"], registry=REGISTRY)
CERTIFICATE_EXPIRY = Gauge(
    "weir_operator_certificate_expiry_seconds",
    "Time until the online certificate expires",
    ["namespace", "name"],
    registry=REGISTRY,
)
DRIFT_REPAIRS = Counter(
    "weir_operator_drift_repairs",
    "Children that somebody else changed or deleted, and that were repaired",
    ["kind"],
    registry=REGISTRY,
)
JOB_FAILURES = Counter(
    "weir_operator_job_failures", "Background jobs that failed and were started again", registry=REGISTRY
)
LEADER = Gauge("weir_operator_leader", "1 on the replica that holds the Lease", registry=REGISTRY)
QUEUE_DEPTH = Gauge("weir_operator_queue_depth", "Custom objects that wait for their reconciliation", registry=REGISTRY)

_update_gauges: list[Callable[[], None]] = []


def before_each_page(update: Callable[[], None]) -> None:
    """Call `update` before each page is made, in place of the function given before."""
    _update_gauges[:] = [update]


def render() -> bytes:
    for update in _update_gauges:
        update()
    return generate_latest(REGISTRY)
