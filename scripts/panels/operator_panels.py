"""Panels of the dashboard "Operator"."""

from __future__ import annotations

from panels.queries import lines, number

OPERATOR_SELECT = '{namespace=~"$namespace"}'


def operator(metric: str, labels: str, window: bool = False) -> str:
    inner = f"{metric}{OPERATOR_SELECT}"
    return f"sum by ({labels}) ({f'rate({inner}[$__rate_interval])' if window else inner})"


OPERATOR = (
    number(
        "Leaders", 'sum(weir_operator_leader{namespace=~"$namespace"})', text="Exactly one, for any number of replicas."
    ),
    number("Objects ready", 'sum(weir_operator_objects{namespace=~"$namespace",ready="true"})'),
    number("Objects not ready", 'sum(weir_operator_objects{namespace=~"$namespace",ready="false"})'),
    number(
        "Next certificate expiry",
        'min(weir_operator_certificate_expiry_seconds{namespace=~"$namespace"})',
        "s",
    ),
    lines(
        "Reconciles",
        (operator("weir_operator_reconciles_total", "kind, result", True), "{{kind}} {{result}}"),
        unit="ops",
    ),
    lines(
        "Reconcile time",
        (
            f"histogram_quantile(0.5, {operator('weir_operator_reconcile_seconds_bucket', 'le', True)})",
            "p50",
        ),
        (
            f"histogram_quantile(0.99, {operator('weir_operator_reconcile_seconds_bucket', 'le', True)})",
            "p99",
        ),
        unit="s",
    ),
    lines(
        "API requests",
        (operator("weir_operator_api_requests_total", "verb, code", True), "{{verb}} {{code}}"),
        unit="ops",
    ),
    lines(
        "Repaired child objects", (operator("weir_operator_drift_repairs_total", "kind", True), "{{kind}}"), unit="ops"
    ),
    lines(
        "Certificates",
        (operator("weir_operator_certificate_expiry_seconds", "exported_namespace, name"), "{{name}}"),
        unit="s",
    ),
    lines(
        "Background jobs that failed",
        (operator("weir_operator_job_failures_total", "pod", True), "{{pod}}"),
        unit="ops",
        text="Must be 0. The operator starts its work again; its log has the error.",
    ),
    lines("Objects waiting to be reconciled", (operator("weir_operator_queue_depth", "pod"), "{{pod}}")),
    lines("Objects", (operator("weir_operator_objects", "kind, ready"), "{{kind}} ready={{ready}}")),
)
