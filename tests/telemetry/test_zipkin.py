"""Spans as Zipkin's JSON."""

import asyncio
import json

from aiohttp import web
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from weir.telemetry.otel import OtelTracer
from weir.telemetry.zipkin import ZipkinExporter, zipkin_span


def finished() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    tracer = OtelTracer(exporter, ratio=1, instance="one", batch=False)
    send = tracer.start("SEND")
    root = tracer.start("SUBS", links=[send.context()])
    child = tracer.start("takeover", root)
    child.set("count", 3)
    child.end("FENCED")
    root.end()
    send.end()
    return exporter


def test_a_span_keeps_its_place_and_its_tags() -> None:
    takeover, subs, send = (zipkin_span(span) for span in finished().get_finished_spans())
    assert takeover["traceId"] == subs["traceId"] != send["traceId"]
    assert takeover["parentId"] == subs["id"]
    assert takeover["tags"] == {"weir.count": "3", "weir.result": "FENCED", "error": "FENCED"}
    assert subs["kind"] == "SERVER" and "parentId" not in subs
    assert subs["tags"] == {"link": send["traceId"]}
    assert subs["localEndpoint"] == {"serviceName": "edge one"}
    assert subs["duration"] >= takeover["duration"] >= 1


async def test_it_is_posted_as_json() -> None:
    received: asyncio.Queue[object] = asyncio.Queue()

    async def take(request: web.Request) -> web.Response:
        await received.put(await request.json())
        return web.Response(status=202)

    app = web.Application()
    app.router.add_post("/api/v2/spans", take)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    spans = finished().get_finished_spans()
    exporter = ZipkinExporter(f"http://127.0.0.1:{runner.addresses[0][1]}/api/v2/spans")
    assert await asyncio.to_thread(exporter.export, spans) is SpanExportResult.SUCCESS
    assert received.get_nowait() == json.loads(json.dumps([zipkin_span(span) for span in spans]))
    await runner.cleanup()


def test_nobody_there_is_a_failure_and_no_exception() -> None:
    exporter = ZipkinExporter("http://127.0.0.1:1/api/v2/spans")
    assert exporter.export(finished().get_finished_spans()) is SpanExportResult.FAILURE
