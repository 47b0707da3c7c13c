"""A span exporter for Zipkin's JSON API, for the local trace viewer of `weir up --traces`."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode

_TIMEOUT = 5


class ZipkinExporter(SpanExporter):
    def __init__(self, url: str) -> None:
        self._url = url

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        body = json.dumps([zipkin_span(span) for span in spans]).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT):
                return SpanExportResult.SUCCESS
        except (urllib.error.URLError, TimeoutError):
            return SpanExportResult.FAILURE


def zipkin_span(span: ReadableSpan) -> dict[str, Any]:
    context = span.get_span_context()
    start, end = span.start_time or 0, span.end_time or 0
    tags = {name: str(value) for name, value in (span.attributes or {}).items()}
    if span.status.status_code is StatusCode.ERROR:
        tags["error"] = tags.get("weir.result", "error")
    for link in span.links:
        tags["link"] = f"{link.context.trace_id:032x}"  # Zipkin has no links, but people can search for a tag.
    result: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}" if context else "",
        "id": f"{context.span_id:016x}" if context else "",
        "name": span.name,
        "timestamp": start // 1000,
        "duration": max(1, (end - start) // 1000),
        "localEndpoint": {"serviceName": f"edge {span.resource.attributes.get('service.instance.id', '')}"},
        "tags": tags,
        "annotations": [{"timestamp": event.timestamp // 1000, "value": event.name} for event in span.events],
    }
    if span.parent is not None:
        result["parentId"] = f"{span.parent.span_id:016x}"
    if span.kind is SpanKind.SERVER:
        result["kind"] = "SERVER"
    return result
