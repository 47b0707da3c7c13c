"""Apple's push service.

A web token signed with the team's key identifies the router. Apple wants a new token no more often than every 20
minutes and no less often than every 60. The time of issue is rounded down to INTERVAL and the signature is
deterministic. So all edges of a fleet send the same token, which is 0 to 40 minutes old.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Final

from weir.crypto import p256
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import HttpError, Origin, Request, Response
from weir.notifier.push.limits import Gates, retry_after
from weir.notifier.push.payload import apns_body, notification_data
from weir.notifier.push.provider import Provider
from weir.notifier.store.records import Push, PushKind
from weir.wire.ntf.types import InvalidReason

_log = logging.getLogger(__name__)

INTERVAL: Final = 40 * 60
_DEVICE: Final = re.compile(rb"[0-9A-Fa-f]+")
_QUIET: Final = 60.0  # seconds between two lines about the same refusal

_INVALID: Final = {
    (400, "BadDeviceToken"): InvalidReason.BAD,
    (400, "DeviceTokenNotForTopic"): InvalidReason.TOPIC,
    (410, "ExpiredToken"): InvalidReason.EXPIRED,
    (410, "Unregistered"): InvalidReason.UNREGISTERED,
}
_MISCONFIGURED: Final = frozenset({"TopicDisallowed", "ExpiredProviderToken", "InvalidProviderToken"})
_OF_THE_DEVICE: Final = "TooManyRequests"  # for one device: others may be pushed to
_KNOWN: Final = _MISCONFIGURED | {
    *(reason for _, reason in _INVALID),
    _OF_THE_DEVICE,
    "TooManyProviderTokenUpdates",
    "PayloadTooLarge",
    "InternalServerError",
    "ServiceUnavailable",
    "Shutdown",
}


class WebTokens:
    """The fleet's token. `now` is the Unix time."""

    def __init__(
        self, key: p256.PrivateKey, *, key_id: str, team_id: str, now: Callable[[], float] = time.time
    ) -> None:
        self._key, self._key_id, self._team_id = key, key_id, team_id
        self._now = now
        self._issued = -1
        self._authorization = b""

    def authorization(self) -> bytes:
        """Return the value of the authorization header."""
        issued = int(self._now()) // INTERVAL * INTERVAL
        if issued != self._issued:
            token = p256.web_token(self._key, {"kid": self._key_id}, {"iss": self._team_id, "iat": issued})
            self._issued, self._authorization = issued, b"bearer " + token
        return self._authorization


class Apns(Provider):
    """One of Apple's hosts."""

    def __init__(self, client: Client, origin: Origin, tokens: WebTokens, topic: str) -> None:
        super().__init__()
        self._client = client
        self._origin = origin
        self._tokens = tokens
        self._topic = topic.encode()
        self._gates = Gates()
        self._logged: dict[str, float] = {}

    def paused(self) -> float:
        return self._gates.wait("", time.monotonic())

    async def send(self, push: Push) -> Outcome:
        device = push.token.device.token
        data = notification_data(push)
        if data is None:
            return Failed()
        if not _DEVICE.fullmatch(device):
            return Invalid(InvalidReason.BAD)
        if not self._gates.admit("", time.monotonic()):
            return RetryLater(self.wait(push))
        headers = [
            (b"apns-topic", self._topic),
            (b"apns-push-type", b"alert"),
            (b"authorization", self._tokens.authorization()),
        ]
        if push.kind is not PushKind.MESSAGES:
            headers[1:2] = [(b"apns-push-type", b"background"), (b"apns-priority", b"5")]
        request = Request(self._origin, b"/3/device/" + device, headers, apns_body(push.kind, data))
        try:
            response = await self._client.post(request, is_transient)
        except HttpError as error:
            self.answers[type(error).__name__] += 1
            self._gates.failed("", time.monotonic())
            return RetryLater()
        return self._outcome(response)

    async def close(self) -> None:
        await self._client.pool.close()

    def numbers(self) -> Mapping[str, int]:
        return {"connections": self._client.pool.connections, **self._gates.numbers(time.monotonic())}

    def _outcome(self, response: Response) -> Outcome:
        now, reason = time.monotonic(), reason_of(response)
        self.answers[f"{response.status} {reason if reason in _KNOWN else ''}".rstrip()] += 1
        if response.status == 429 and reason != _OF_THE_DEVICE:
            after = retry_after(response.headers.get(b"retry-after"), time.time())
            return RetryLater(self._gates.limited("", now, after))
        if response.status >= 500:
            self._gates.failed("", now)
            return RetryLater(retry_after(response.headers.get(b"retry-after"), time.time()))
        self._gates.succeeded("", now)
        if response.status == 200:
            return Delivered()
        if (response.status, reason) in _INVALID:
            return Invalid(_INVALID[response.status, reason])
        if response.status in (410, 429):
            return RetryLater(retry_after(response.headers.get(b"retry-after"), time.time()))
        if reason in _MISCONFIGURED and now - self._logged.get(reason, -_QUIET) >= _QUIET:
            self._logged[reason] = now
            _log.error("APNs refuses this router: %s; check [apns] key, key_id, team_id and topic", reason)
        return Failed()


def reason_of(response: Response) -> str:
    if not response.body:
        return ""
    try:
        reason = json.loads(response.body)["reason"]
    except (ValueError, KeyError, TypeError):
        return ""
    return reason if isinstance(reason, str) else ""


def is_transient(response: Response) -> bool:
    """Whether a fresh connection may help."""
    return response.status == 503 or (response.status == 410 and (410, reason_of(response)) not in _INVALID)
