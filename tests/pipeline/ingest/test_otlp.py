"""Lines of the collector: Weir's spans, with nothing in them that is not from a closed vocabulary."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.pipeline.ingest.otlp import UnreadableLine, read_line

SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "parentSpanId": "",
    "name": "SUBS",
    "kind": 2,
    "startTimeUnixNano": "1795128307412000123",
    "endTimeUnixNano": "1795128307413500123",
    "attributes": [
        {"key": "weir.result", "value": {"stringValue": "SOKS"}},
        {"key": "weir.count", "value": {"intValue": "1000"}},
        {"key": "weir.edge_local", "value": {"boolValue": True}},
    ],
    "status": {"code": 2},
}


def line(*spans: Any, scope: str = "weir", service: str = "weir-edge") -> bytes:
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    scopes = [{"scope": {"name": scope}, "spans": list(spans)}]
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}).encode() + b"\n"


def test_a_span() -> None:
    (row,) = read_line(line(SPAN))
    assert str(row.pop("day")) == "2026-11-19"
    assert row == {
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
        "parent_span_id": None,
        "name": "SUBS",
        "service": "weir-edge",
        "start_us": 1795128307412000,
        "duration_us": 1500,
        "status": "error",
        "attributes": {"result": "SOKS", "count": "1000", "edge_local": "true"},
    }


@pytest.mark.parametrize(
    "attribute",
    [
        {"key": "weir.queue", "value": {"stringValue": "abc"}},
        {"key": "http.url", "value": {"stringValue": "OK"}},
        {"key": "weir.result", "value": {"stringValue": "id=3q2-7w"}},
        {"key": "weir.result", "value": {"bytesValue": "AAAA"}},
    ],
)
def test_attributes_that_are_not_allowed_are_left_out(attribute: Any) -> None:
    (row,) = read_line(line(SPAN | {"attributes": [attribute]}))
    assert row["attributes"] == {}


def test_spans_of_other_programs_are_left_out() -> None:
    assert read_line(line(SPAN | {"name": "GET /users/17"}, scope="http")) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"traceId": "zz"}, "a span has no usable ids"),
        ({"parentSpanId": "12"}, "a span has no usable ids"),
        ({"name": "a/b"}, "a span has no usable name"),
        ({"startTimeUnixNano": "1"}, "a span has no usable time"),
        ({"startTimeUnixNano": "x"}, "not OTLP"),
        ({"attributes": 7}, "not OTLP"),
    ],
)
def test_what_is_not_usable(changes: Any, reason: str) -> None:
    with pytest.raises(UnreadableLine, match=reason):
        read_line(line(SPAN | changes))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SPAN, "resourceSpans", "scopeSpans", "spans", "scope"]), inner, max_size=4)
    ),
)


@given(st.binary(max_size=50) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_line_is_read_or_refused(text: bytes) -> None:
    try:
        assert isinstance(read_line(text), list)
    except UnreadableLine as error:
        assert str(error) in ("not JSON", "not OTLP")


@given(st.sampled_from(list(SPAN)), json_values)
def test_any_field_may_be_wrong(field: str, value: Any) -> None:
    try:
        rows = read_line(line(SPAN | {field: value}))
    except UnreadableLine:
        return
    assert len(rows) == 1
