"""A push service of Web Push (RFC 8030), with subscribers that decrypt what they get."""

from __future__ import annotations

import json
import os
import re
import time
from typing import Final, NamedTuple

from weir.bench.standins.authority import Authority
from weir.bench.standins.program import Arrived, Program, as_json
from weir.bench.standins.server import Answer, Received, Server
from weir.crypto import p256, web_push
from weir.wire.ntf.device_token import WebPushToken, format_device_token

_VAPID: Final = re.compile(r"vapid t=([\w.-]+), ?k=([\w-]+)")
_LONGEST: Final = 24 * 3600


class Subscriber(NamedTuple):
    """A device: its token and the keys that the token's public parts belong to. `vapid` is the point of the only sender
    that the device's browser has named, if it has named one (RFC 8292, 4.2)."""

    token: WebPushToken
    key: p256.PrivateKey
    vapid: bytes | None = None


class WebPush:
    """`vapid` is the sender of subscriptions that name none."""

    def __init__(
        self,
        authority: Authority,
        *,
        vapid: p256.PublicKey | None = None,
        host: str = "localhost",
        http1_only: bool = False,
        record: bool = True,
    ) -> None:
        self.program = Program(record=record)
        self.server = Server(self._handle, authority.server_context((host,)), http1_only=http1_only)
        self.subscribers: dict[str, Subscriber] = {}
        self._vapid = None if vapid is None else p256.point(vapid)
        self._host = host

    @property
    def origin(self) -> str:
        return f"https://{self._host}:{self.server.port}"

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        await self.server.start(host, port)

    async def close(self) -> None:
        await self.server.close()

    def subscribe(self, vapid: bytes | None = None) -> Subscriber:
        key, name = p256.generate(), os.urandom(12).hex()
        point = p256.point(key.public_key())
        token = WebPushToken(self._host, self.server.port, f"/push/{name}", os.urandom(16), point)
        self.subscribers[name] = Subscriber(token, key, vapid or self._vapid)
        return self.subscribers[name]

    def target(self, subscriber: Subscriber) -> str:
        return subscriber.token.path.removeprefix("/push/")

    def _handle(self, request: Received) -> Answer:
        """Besides those of `Program.control`, tests in other processes have

        POST /standin/subscriptions    {"token": "webpush https://…", "target": id, "private": the receiver's key}
        """
        if request.path == "/standin/subscriptions":
            one = self.subscribe()
            scalar = one.key.private_numbers().private_value.to_bytes(32, "big")
            text = format_device_token(one.token.device_token)
            return as_json(201, {"token": text, "target": self.target(one), "private": p256.base64url(scalar).decode()})
        if request.path.startswith("/standin/"):
            return self.program.control(request)
        target = request.path.removeprefix("/push/")
        planned = self.program.take(target)
        if planned is not None:
            return planned
        subscriber = self.subscribers.get(target)
        if subscriber is None:
            return _refusal(404, 102, "Not Found")
        problem = self._judge(request, subscriber.vapid)
        if problem is not None:
            return problem
        plain = web_push.decrypt(subscriber.key, subscriber.token.auth, request.body)
        if plain is None:
            return _refusal(400, 110, "Undecryptable")
        self.program.accept(Arrived(target, request.headers, request.body, plain))
        return Answer(201, (("location", f"{self.origin}/message/{self.program.count}"), ("ttl", "0")))

    def _judge(self, request: Received, sender: bytes | None) -> Answer | None:
        headers = request.headers
        if request.method != "POST":
            return _refusal(405, 105, "Method Not Allowed")
        if not headers.get("ttl", "").isdigit():
            return _refusal(400, 111, "Missing TTL")
        if headers.get("content-encoding") != "aes128gcm":
            return _refusal(400, 110, "Unknown content encoding")
        if headers.get("urgency") not in (None, "very-low", "low", "normal", "high"):
            return _refusal(400, 110, "Unknown urgency")
        if len(request.body) > web_push.LARGEST_BODY:
            return _refusal(413, 104, "Payload Too Large")
        match = _VAPID.fullmatch(headers.get("authorization", ""))
        if match is None:
            return _refusal(401, 109, "Missing VAPID")
        point = p256.from_base64url(match[2].encode())
        key = p256.public_key(point)
        read = None if key is None else p256.read_web_token(key, match[1].encode())
        if read is None or (sender is not None and point != sender):
            return _refusal(403, 109, "Wrong VAPID key or signature")
        claims = read[1]
        if claims.get("aud") != self.origin or not 0 < claims.get("exp", 0) - time.time() < _LONGEST:
            return _refusal(403, 109, "Wrong VAPID claims")
        return None


def _refusal(status: int, number: int, text: str) -> Answer:
    """In the form of Mozilla's service."""
    body = json.dumps({"code": status, "errno": number, "error": text}).encode()
    return Answer(status, (("content-type", "application/json"),), body)
