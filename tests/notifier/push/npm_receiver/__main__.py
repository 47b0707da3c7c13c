"""Push to subscribers of web-push-testing, in a network namespace, because the service listens on all interfaces.

    python -m tests.notifier.push.npm_receiver PROGRAM

The service speaks HTTP alone, so TLS ends here and is passed on. Prints one JSON object with the outcomes.
"""

import asyncio
import base64
import json
import sys
from typing import Any

import aiohttp
import uvloop

from tests.faults.network import open_run
from tests.notifier.push.pushes import message, opened, push, token
from weir.bench.standins.authority import Authority
from weir.crypto import p256
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.pool import Pool
from weir.notifier.push.vapid import Vapid
from weir.notifier.push.web_push import WebPush
from weir.notifier.store.records import PushKind
from weir.wire.ntf.device_token import WebPushToken

PLAIN, TLS = 8090, 8443


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


async def _on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    there, back = await asyncio.open_connection("localhost", PLAIN)
    await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer), return_exceptions=True)


class Service:
    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def post(self, path: str, **form: str) -> Any:
        async with self._http.post(f"http://localhost:{PLAIN}{path}", data=form) as response:
            return await response.json(content_type=None) if response.content_type != "text/plain" else None

    async def ready(self) -> None:
        while True:
            try:
                await self.post("/status")
                return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)

    async def subscribe(self, fingerprint: str) -> tuple[str, WebPushToken]:
        data = (await self.post("/subscribe", userVisibleOnly="true", applicationServerKey=fingerprint))["data"]
        keys = {name: p256.from_base64url(value.encode()) for name, value in data["keys"].items()}
        name = data["clientHash"]
        return name, WebPushToken("localhost", TLS, f"/notify/{name}", keys["auth"], keys["p256dh"])


async def run(program: str) -> dict[str, Any]:
    authority, key = Authority(), p256.generate()
    context = authority.server_context()
    context.set_alpn_protocols(["http/1.1"])
    tls = await asyncio.start_server(_on_client, "127.0.0.1", TLS, ssl=context)
    node = await asyncio.create_subprocess_exec("node", program, str(PLAIN), stdout=sys.stderr, stderr=sys.stderr)
    providers = [
        WebPush(Client(Pool(authority.client_context(), allow_local=True), 5.0), Vapid(each, "mailto:a@example.org"))
        for each in (key, p256.generate())
    ]
    ours, other = providers
    try:
        async with aiohttp.ClientSession() as http:
            service = Service(http)
            await service.ready()
            name, subscription = await service.subscribe(p256.public_text(key))
            device = token(subscription.device_token)
            result: dict[str, Any] = {"messages": [], "code": base64.b64encode(device.code).decode()}
            for kind in (PushKind.MESSAGES, PushKind.VERIFICATION, PushKind.CHECK):
                result[kind.name] = repr(await ours.send(push(message(), kind=kind, of=device)))
            result["wrong key"] = repr(await other.send(push(message(), of=device)))
            for text in (await service.post("/get-notifications", clientHash=name))["data"]["messages"]:
                plain = opened(device, text.encode())
                shown = base64.b64encode(plain).decode() if isinstance(plain, bytes) else plain
                result["messages"].append(len(shown) if isinstance(shown, list) else shown)
            await service.post(f"/expire-subscription/{name}")
            result["expired"] = repr(await ours.send(push(message(), of=device)))
        return result
    finally:
        node.kill()
        await node.wait()
        for provider in providers:
            await provider.close()
        tls.close()


if __name__ == "__main__":
    open_run()
    print(json.dumps(uvloop.run(run(sys.argv[1]))))
