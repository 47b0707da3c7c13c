"""Spans of the collector's files become rows, each once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.ingest.support import options, rows, run
from tests.pipeline.ingest.test_otlp import SPAN, line

pytestmark = pytest.mark.spark


def span(number: int, name: str = "SUBS") -> dict[str, Any]:
    return SPAN | {"spanId": f"{number:016x}", "name": name}


def ids(tables: Path) -> list[int]:
    return sorted(int(row["span_id"], 16) for row in rows(tables, "bronze/spans"))


def test_spans_of_files_that_grow_and_are_rotated(spark: Any, tmp_path: Path) -> None:
    tables, files = tmp_path / "tables", tmp_path / "otel"
    files.mkdir()
    path = files / "traces.json"
    given = options(tables, spans=(str(path),))
    path.write_bytes(line(span(1), span(2)) + line(span(3)) + b"{not json}\n" + line(span(4))[:20])
    done = run(spark, given).total
    assert (done.spans, done.unreadable) == (3, 1)
    path.write_bytes(line(span(1), span(2)) + line(span(3)) + b"{not json}\n" + line(span(4)))
    path.rename(files / "traces-2026-11-19T10-00-00.000.json")
    path.write_bytes(line(span(5), span(3)))  # the collector wrote span 3 twice
    run(spark, given)
    assert ids(tables) == [1, 2, 3, 4, 5]
    (files / "copy.json").write_bytes(path.read_bytes() + line(span(6)))
    run(spark, options(tables, spans=(str(files),)))
    assert not run(spark, options(tables, spans=(str(files),))).batches
    assert ids(tables) == [1, 2, 3, 4, 5, 6]
    (bad,) = rows(tables, "bronze/quarantine")
    assert (bad["stream"], bad["reason"], bad["raw"]) == ("traces.json", "not JSON", b"")
    (first, *_) = rows(tables, "bronze/spans")
    assert dict(first["attributes"]) == {"result": "SOKS", "count": "1000", "edge_local": "true"}
    assert first["duration_us"] == 1500


def test_the_lines_that_weir_s_own_exporter_leads_to(spark: Any, tmp_path: Path) -> None:
    """Spans recorded by Weir, as the collector's file exporter writes them: protobuf's JSON with ids in hexadecimal."""
    import base64

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from weir.telemetry.otel import OtelTracer

    exporter = InMemorySpanExporter()
    tracer = OtelTracer(exporter, ratio=1.0, instance="edge", batch=False)
    root = tracer.sample("SUBS")
    child = root.child("takeover")
    child.end()
    root.set("count", 1000)
    root.end(error="AUTH")
    content = MessageToDict(encode_spans(exporter.get_finished_spans()))
    for each in content["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            each[name] = base64.b64decode(each.get(name, "")).hex()
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(content) + "\n")
    run(spark, options(tmp_path / "tables", spans=(str(path),)))
    found = {row["name"]: row for row in rows(tmp_path / "tables", "bronze/spans")}
    assert found.keys() == {"SUBS", "takeover"}
    assert found["takeover"]["parent_span_id"] == found["SUBS"]["span_id"]
    assert found["SUBS"]["status"] == "error"
    assert dict(found["SUBS"]["attributes"]) == {"count": "1000", "result": "AUTH"}
    assert found["SUBS"]["service"] == "weir-edge"
