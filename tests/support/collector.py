"""An OTLP/HTTP trace collector in memory: edges export to it as to any other, tests read the spans back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SpanSeen:
    name: str
    trace: bytes
    id: bytes
    parent: bytes
    links: tuple[bytes, ...]  # trace ids
    edge: str
    attributes: dict[str, object]
    raw: bytes


@dataclass
class Collector:
    url: str = ""
    spans: list[SpanSeen] = field(default_factory=list)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def named(self, name: str) -> list[SpanSeen]:
        return [span for span in self.spans if span.name == name]

    async def until(self, condition: Callable[[Collector], bool]) -> None:
        while not condition(self):
            self._arrived.clear()
            await self._arrived.wait()

    async def take(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await request.read())
        for resource in message.resource_spans:
            edge = {a.key: a.value.string_value for a in resource.resource.attributes}["service.instance.id"]
            for scope in resource.scope_spans:
                self.spans += [
                    SpanSeen(
                        span.name,
                        span.trace_id,
                        span.span_id,
                        span.parent_span_id,
                        tuple(link.trace_id for link in span.links),
                        edge,
                        {a.key: getattr(a.value, a.value.WhichOneof("value") or "") for a in span.attributes},
                        span.SerializeToString(),
                    )
                    for span in scope.spans
                ]
        self._arrived.set()
        return web.Response(body=b"", content_type="application/x-protobuf")


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    found = Collector()
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/traces", found.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield found
    finally:
        await runner.cleanup()
