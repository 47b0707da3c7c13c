"""A proxy in front of the API server. It sees every request of an operator, and can kill the operator during one."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import aiohttp
import yaml
from aiohttp import web

WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Call(NamedTuple):
    method: str
    path: str
    status: int
    watch: bool


class ApiProxy:
    """Runs in a thread. `before` and `after` are called around each write with its number, counted from 1; a write for
    which `before` says True is lost on its way."""

    def __init__(self, listener: socket.socket, kubeconfig: Path, token: str | None = None) -> None:
        self.calls: list[Call] = []
        self.writes = 0
        self.before: Callable[[int, str, str], bool] = lambda *_: False
        self.after: Callable[[int, str, str], bool] = lambda *_: False
        self._listener = listener
        self._config = yaml.safe_load(kubeconfig.read_text())
        self._token = token
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def kubeconfig(self, path: Path) -> Path:
        """A kubeconfig for the operator: plain HTTP to this proxy, which adds TLS and the login."""
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "proxy", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "proxy",
                }
            )
        )
        return path

    def __enter__(self) -> ApiProxy:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._listener.close()

    def refused(self) -> list[Call]:
        return [call for call in self.calls if call.status in (401, 403)]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._stop())
        self._loop.close()

    async def _start(self) -> None:
        cluster = self._config["clusters"][0]["cluster"]
        user = self._config["users"][0]["user"]
        self._server = cluster["server"]
        tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        headers = {}
        if self._token is None:
            with tempfile.NamedTemporaryFile() as certificate, tempfile.NamedTemporaryFile() as key:
                certificate.write(base64.b64decode(user["client-certificate-data"]))
                key.write(base64.b64decode(user["client-key-data"]))
                certificate.flush()
                key.flush()
                tls.load_cert_chain(certificate.name, key.name)
        else:
            headers["Authorization"] = f"Bearer {self._token}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0), headers=headers, timeout=aiohttp.ClientTimeout(total=None)
        )
        app = web.Application(client_max_size=1 << 24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._listener).start()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        # The Lease is not part of any handler.
        number = 0
        if request.method in WRITES and "/leases" not in request.path:
            self.writes += 1
            number = self.writes
            if self.before(number, request.method, request.path):
                return web.Response(status=502)
        kept = ("Content-Type", "Accept")
        async with self._session.request(
            request.method,
            self._server + request.path_qs,
            data=body or None,
            headers={name: request.headers[name] for name in kept if name in request.headers},
        ) as upstream:
            watch = request.query.get("watch") == "true"
            self.calls.append(Call(request.method, request.path, upstream.status, watch))
            response = web.StreamResponse(status=upstream.status, headers={"Content-Type": upstream.content_type})
            if not watch:
                text = await upstream.read()
                if number:
                    self.after(number, request.method, request.path)
                return web.Response(status=upstream.status, body=text, content_type=upstream.content_type)
            await response.prepare(request)
            try:
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
            except (ConnectionError, aiohttp.ClientError):
                pass
            return response
