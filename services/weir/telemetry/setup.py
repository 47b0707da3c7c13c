"""Sets up logs and traces as the [telemetry] section says. The OpenTelemetry SDK is imported only if traces are on."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING

from weir.telemetry.errors import ERRORS
from weir.telemetry.tracing import NULL_TRACER, Tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter


def open_tracing(traces: str | None, *, ratio: float, instance: str) -> Tracer:
    """Return NULL_TRACER if `traces` is unset. `instance` tells edges apart; it is random per process start."""
    if traces is None:
        return NULL_TRACER
    from weir.telemetry.otel import OtelTracer

    return OtelTracer(_exporter(traces), ratio=ratio, instance=instance)


def _exporter(traces: str) -> SpanExporter:
    if traces.startswith("zipkin+"):
        from weir.telemetry.zipkin import ZipkinExporter

        return ZipkinExporter(traces.removeprefix("zipkin+").rstrip("/") + "/api/v2/spans")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=traces.rstrip("/") + "/v1/traces")


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def configure_logging(level: str, form: str) -> None:
    """Log to stderr, one event per line, as text or JSON, and count errors."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JsonFormatter() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler, ERRORS], force=True)
    # Libraries that log the addresses of clients and their request lines.
    for noisy in ("aiohttp.access", "asyncio", "urllib3", "opentelemetry"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
