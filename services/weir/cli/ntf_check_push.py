"""A device of `weir ntf check` that gets its pushes through an ntfy server, as UnifiedPush does.

The router sends real Web Push requests to the server. The check reads the messages of its random topic and decrypts
them, first as the receiver of Web Push (RFC 8291), then with the secret that it shares with the router.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import secrets
import ssl
from pathlib import Path
from typing import NamedTuple

import aiohttp
from yarl import URL

from weir.cli.errors import Fail, os_error
from weir.crypto import p256, web_push
from weir.crypto.boxes import cb_decrypt
from weir.wire.ntf.device_token import WebPushToken

_POLL = 0.3  # seconds


class PushServer(NamedTuple):
    url: URL
    tls: ssl.SSLContext


def push_server(text: str, ca: Path | None) -> PushServer:
    url = URL(text)
    if url.scheme != "https" or url.host is None:
        raise Fail(f"--web-push {text}: expected https://host[:port] of an ntfy server")
    try:
        return PushServer(url, ssl.create_default_context(cafile=None if ca is None else str(ca)))
    except ssl.SSLError:
        raise Fail(f"{ca}: no CA certificates in PEM form") from None
    except OSError as error:
        raise os_error(ca, error) from None


class Receiver:
    """One topic of an ntfy server."""

    def __init__(self, server: PushServer, timeout: float) -> None:
        self._server = server
        self._timeout = timeout
        self._key = p256.generate()
        self._auth = os.urandom(16)
        self._topic = "up" + secrets.token_urlsafe(9).replace("-", "a").replace("_", "b")
        self._seen: set[str] = set()

    @property
    def token(self) -> WebPushToken:
        url = self._server.url
        assert url.host is not None
        port = None if url.port == url.with_port(None).port else url.port
        point = p256.point(self._key.public_key())
        return WebPushToken(url.host, port, f"{url.path.rstrip('/')}/{self._topic}?up=1", self._auth, point)

    async def receive(self, secret: bytes, name: str) -> bytes:
        """Wait for a push with this field. Raises TimeoutError."""
        async with asyncio.timeout(self._timeout), aiohttp.ClientSession() as session:
            while True:
                for data in await self._poll(session):
                    if name in data:
                        return _opened(secret, data, name)
                await asyncio.sleep(_POLL)

    async def _poll(self, session: aiohttp.ClientSession) -> list[dict[str, str]]:
        url = self._server.url / self._topic / "json" % {"poll": "1", "since": "all"}
        try:
            async with session.get(url, ssl=self._server.tls) as response:
                if response.status != 200:
                    raise Fail(f"--web-push: the push server answers {response.status}")
                lines = (await response.text()).splitlines()
        except aiohttp.ClientError as error:
            raise Fail(f"--web-push: the push server does not answer ({type(error).__name__})") from None
        return [data for line in lines if (data := self._read(json.loads(line))) is not None]

    def _read(self, message: dict[str, str]) -> dict[str, str] | None:
        """The notification's data in a message that was not seen yet."""
        if message.get("event") != "message" or message["id"] in self._seen:
            return None
        self._seen.add(message["id"])
        try:
            body = base64.b64decode(message["message"], validate=True)
        except (binascii.Error, ValueError):
            raise Fail("--web-push: a push that is not encrypted") from None
        plain = web_push.decrypt(self._key, self._auth, body)
        if plain is None:
            raise Fail("--web-push: a push that does not decrypt with the keys of this device")
        data: dict[str, str] = json.loads(plain)
        return data


def _opened(secret: bytes, data: dict[str, str], name: str) -> bytes:
    nonce, box = (base64.urlsafe_b64decode(data[field]) for field in ("nonce", name))
    plain = cb_decrypt(secret, nonce, box)
    if plain is None:
        raise Fail("--web-push: a push that does not decrypt with the token's secret")
    return plain
