"""Lines that the OpenTelemetry collector's file exporter writes: OTLP in JSON, one export a line.

Only Weir's own spans are taken, with the attributes of Weir's closed vocabulary: names and values of other programs'
spans may be anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from weir.telemetry.otel import ATTRIBUTES, WORD

SCOPE: Final = "weir"
_PREFIX: Final = "weir."
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_. -]{0,63}")
_ID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}")
_STATUS: Final = {0: "unset", 1: "ok", 2: "error", "STATUS_CODE_OK": "ok", "STATUS_CODE_ERROR": "error"}
_EARLIEST: Final = datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1e9
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1e9

Row = dict[str, Any]


class UnreadableLine(ValueError):
    """The text says why, and repeats nothing of the line."""


def read_line(line: bytes) -> list[Row]:
    """Return Weir's spans. Raises UnreadableLine."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        raise UnreadableLine("not JSON") from None
    try:
        return [_span(service, span) for service, span in _own_spans(content)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnreadableLine(error.args[0] if isinstance(error, UnreadableLine) else "not OTLP") from None


def _own_spans(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in content.get("resourceSpans", ()):
        attributes = resource.get("resource", {}).get("attributes", ())
        names = [each["value"].get("stringValue") for each in attributes if each["key"] == "service.name"]
        for scope in resource.get("scopeSpans", ()):
            if scope.get("scope", {}).get("name") == SCOPE:
                for span in scope.get("spans", ()):
                    yield (names or [""])[0], span


def _span(service: str, span: Mapping[str, Any]) -> Row:
    trace, own, parent = (str(span.get(name) or "").lower() for name in ("traceId", "spanId", "parentSpanId"))
    if len(trace) != 32 or len(own) != 16 or len(parent) not in (0, 16) or not _are_ids(trace, own, parent):
        raise UnreadableLine("a span has no usable ids")
    name = span["name"]
    if not _NAME.fullmatch(name) or not _NAME.fullmatch(service):
        raise UnreadableLine("a span has no usable name")
    start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
    if not _EARLIEST <= start <= _LATEST or not _EARLIEST <= end <= _LATEST:
        raise UnreadableLine("a span has no usable time")
    return {
        "trace_id": trace,
        "span_id": own,
        "parent_span_id": parent or None,
        "name": name,
        "service": service,
        "start_us": start // 1000,
        "duration_us": max(0, end - start) // 1000,
        "status": _STATUS.get(span.get("status", {}).get("code", 0), "unset"),
        "attributes": dict(_attributes(span.get("attributes", ()))),
        "day": datetime.fromtimestamp(start // 10**9, UTC).date(),
    }


def _are_ids(*texts: str) -> bool:
    return all(not text or _ID.fullmatch(text) for text in texts)


def _attributes(attributes: Any) -> Iterator[tuple[str, str]]:
    for attribute in attributes:
        key, value = attribute["key"], attribute["value"]
        name = key.removeprefix(_PREFIX)
        if name == key or name not in ATTRIBUTES:
            continue
        if "intValue" in value:
            yield name, str(int(value["intValue"]))
        elif "boolValue" in value:
            yield name, "true" if value["boolValue"] is True else "false"
        elif isinstance(text := value.get("stringValue"), str) and WORD.fullmatch(text):
            yield name, text
