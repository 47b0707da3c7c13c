"""Web Push (RFC 8030), which is UnifiedPush too: each device brings its own push server.

The router knows nothing of that server and does not trust it. Addresses are checked whenever one is dialled, redirects
are not followed, and long answers are cut off. A server that is slow or that fails has a gate of its own, and no more
than its share of the pushes in progress.

The router identifies itself by VAPID. A subscription is bound to the key that the device was told, so a server that
refuses the router's current key is shown the older ones.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from weir.crypto import p256
from weir.crypto.web_push import encrypt
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Forbidden, HttpError, Origin, Request, Response
from weir.notifier.push.limits import Gates, retry_after
from weir.notifier.push.payload import notification_data
from weir.notifier.push.provider import Provider
from weir.notifier.push.vapid import Vapid, VapidKeys
from weir.notifier.store.records import Push
from weir.runtime.cache import Cache
from weir.wire.ntf.device_token import WebPushToken, web_push_origin, web_push_token
from weir.wire.ntf.types import InvalidReason

_WRONG_KEY: Final = (401, 403)
_MOST_SUBSCRIPTIONS: Final = 10_000
_PATIENCE: Final = 5.0  # seconds in which another key is tried
_HEADERS: Final = [
    (b"ttl", b"2592000"),
    (b"urgency", b"high"),
    (b"content-encoding", b"aes128gcm"),
    (b"content-type", b"application/octet-stream"),
]


class WebPush(Provider):
    def __init__(self, client: Client, vapid: VapidKeys) -> None:
        super().__init__()
        self._client = client
        self._vapid = vapid
        self._gates = Gates()
        self._older: Cache[Vapid] = Cache(_MOST_SUBSCRIPTIONS)  # the keys of subscriptions that want no current one

    def lane(self, push: Push) -> str:
        return web_push_origin(push.token.device.token)

    def wait(self, push: Push) -> float:
        return self._gates.wait(self.lane(push), time.monotonic())

    async def send(self, push: Push) -> Outcome:
        token = web_push_token(push.token.device.token)
        if token is None:
            return Invalid(InvalidReason.BAD)
        data = notification_data(push)
        if data is None:
            return Failed()
        if not self._gates.admit(token.origin, time.monotonic()):
            return RetryLater(self.wait(push))
        try:
            response = await self._post(push.token.device.token, token, data)
        except Forbidden:
            self.answers["Forbidden"] += 1
            return Invalid(InvalidReason.BAD)
        except HttpError as error:
            self.answers[type(error).__name__] += 1
            self._gates.failed(token.origin, time.monotonic())
            return RetryLater()
        return self._outcome(response, token.origin)

    async def close(self) -> None:
        await self._client.pool.close()

    def numbers(self) -> Mapping[str, int]:
        return {"connections": self._client.pool.connections, **self._gates.numbers(time.monotonic())}

    async def _post(self, subscription: bytes, token: WebPushToken, data: bytes) -> Response:
        """Send with the key that the subscription is known to want, then with the others until one is accepted."""
        began = time.monotonic()
        keys = self._vapid.current()
        older = self._older.get(subscription)
        if older in keys:
            keys = (older, *(key for key in keys if key is not older))
        for number, key in enumerate(keys, 1):
            response = await self._client.post(_request(token, data, key), is_transient)
            if response.status not in _WRONG_KEY:
                if key is not keys[0]:
                    self._older.put(subscription, key)
                return response
            # The claim of a push must outlive it, however slowly a server refuses.
            if number == len(keys) or time.monotonic() - began > _PATIENCE:
                break
        return response

    def _outcome(self, response: Response, origin: str) -> Outcome:
        now, status = time.monotonic(), response.status
        self.answers[f"{status // 100}xx" if status not in (404, 410, 413, 429) else str(status)] += 1
        after = retry_after(response.headers.get(b"retry-after"), time.time())
        if status == 429:
            return RetryLater(self._gates.limited(origin, now, after))
        if status >= 500:
            if after is not None:
                return RetryLater(self._gates.limited(origin, now, after))
            self._gates.failed(origin, now)
            return RetryLater()
        self._gates.succeeded(origin, now)
        if 200 <= status < 300:
            return Delivered()
        if status in (404, 410):  # RFC 8030, 7.3: the subscription has expired
            return Invalid(InvalidReason.UNREGISTERED)
        return Failed()


def _request(token: WebPushToken, data: bytes, key: Vapid) -> Request:
    receiver = p256.public_key(token.p256dh)
    assert receiver is not None, "web_push_token has checked the point"
    headers = [*_HEADERS, (b"authorization", key.authorization(token.origin))]
    path = token.path.encode() or b"/"
    return Request(Origin(token.host, token.port or 443), path, headers, encrypt(receiver, token.auth, data))


def is_transient(response: Response) -> bool:
    return response.status == 503 and b"retry-after" not in response.headers
