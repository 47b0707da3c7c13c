"""Health and metrics of the operator itself.

kopf has a server for health too, but it runs only while kopf does. A replica that waits for the Lease must answer its
liveness probe as well.
"""

from __future__ import annotations

from aiohttp import web

from weir_operator import metrics


async def serve(listen: str, port: int) -> web.AppRunner:
    app = web.Application()
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/metrics", _metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, listen, port).start()
    return runner


async def _healthz(_request: web.Request) -> web.Response:
    """A replica that waits for the Lease is healthy too."""
    return web.Response(text="ok\n")


async def _metrics(_request: web.Request) -> web.Response:
    return web.Response(body=metrics.render(), headers={"Content-Type": "text/plain; version=0.0.4"})
