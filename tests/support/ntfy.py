"""A stand-in for an ntfy server: it takes Web Push requests for a topic, and lists a topic's messages."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from aiohttp import web

from weir.transport.server import bind


class Ntfy:
    """Listens on loopback in a thread of its own. `topics` has the bodies of each topic."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.topics: dict[str, list[bytes]] = {}
        self.requests: list[dict[str, str]] = []
        self._context = context
        self._sock = bind("127.0.0.1", 0)
        self.url = f"https://localhost:{self._sock.getsockname()[1]}"

    async def _publish(self, request: web.Request) -> web.Response:
        self.requests.append(dict(request.headers))
        self.topics.setdefault(request.match_info["topic"], []).append(await request.read())
        return web.Response(status=201)

    async def _list(self, request: web.Request) -> web.Response:
        bodies = self.topics.get(request.match_info["topic"], [])
        lines: list[dict[str, Any]] = [
            {"id": str(n), "event": "message", "message": base64.b64encode(body).decode(), "encoding": "base64"}
            for n, body in enumerate(bodies)
        ]
        return web.Response(text="".join(json.dumps(line) + "\n" for line in [{"event": "open"}, *lines]))

    async def serve(self, started: Event, stop: asyncio.Event) -> None:
        app = web.Application()
        app.router.add_post("/{topic}", self._publish)
        app.router.add_get("/{topic}/json", self._list)
        runner = web.AppRunner(app, handle_signals=False)
        await runner.setup()
        await web.SockSite(runner, self._sock, ssl_context=self._context).start()
        started.set()
        await stop.wait()
        await runner.cleanup()


@contextmanager
def ntfy(context: ssl.SSLContext) -> Iterator[Ntfy]:
    server, started = Ntfy(context), Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = Thread(target=loop.run_until_complete, args=(server.serve(started, stop),))
    thread.start()
    try:
        assert started.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
