"""Apple's push service, as far as a provider sees it: the answers of its documentation, with their reasons."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from typing import Final

from weir.bench.standins.authority import Authority
from weir.bench.standins.program import Arrived, Program, as_json
from weir.bench.standins.server import Answer, Received, Server
from weir.crypto import p256

_PATH: Final = re.compile(r"/3/device/(.*)")
_TOKEN: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
_LARGEST: Final = 4096
_UPDATE_INTERVAL: Final = 20 * 60
_OLDEST_TOKEN: Final = 60 * 60


def refusal(status: int, reason: str, *, timestamp: int | None = None) -> Answer:
    value: dict[str, object] = {"reason": reason}
    if timestamp is not None:
        value["timestamp"] = timestamp
    return as_json(status, value)


class Apns:
    """`key` is the team's key. `web_tokens` are the JWTs that were seen, with the time of each."""

    def __init__(
        self,
        authority: Authority,
        *,
        key: p256.PublicKey,
        key_id: str = "KEY4567890",
        team_id: str = "TEAM567890",
        topic: str = "dev.weir.app",
        host: str = "localhost",
        record: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.program = Program(record=record)
        self.server = Server(self._handle, authority.server_context((host,)))
        self.web_tokens: dict[bytes, float] = {}
        self._keys: dict[str, p256.PublicKey] = {key_id: key}
        self._issued: dict[bytes, int] = {}
        self._updated: dict[str, float] = {}  # by key
        self._team_id, self._topic = team_id, topic
        self._now = now

    def trust(self, key: p256.PublicKey, key_id: str) -> None:
        """Give the team another key."""
        self._keys[key_id] = key

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        await self.server.start(host, port)

    async def close(self) -> None:
        await self.server.close()

    def _handle(self, request: Received) -> Answer:
        if request.path.startswith("/standin/"):
            return self.program.control(request)
        path = _PATH.fullmatch(request.path)
        token = path[1] if path else ""
        planned = self.program.take(token)
        answer = planned or self._judge(request, path is not None, token)
        if answer.status == 200 and answer.failure is None:
            self.program.accept(Arrived(token, request.headers, request.body, request.body))
            return answer._replace(headers=(*answer.headers, ("apns-id", str(uuid.uuid4()))))
        return answer

    def _judge(self, request: Received, path: bool, token: str) -> Answer:
        headers = request.headers
        if not path:
            return refusal(404, "BadPath")
        if request.method != "POST":
            return refusal(405, "MethodNotAllowed")
        problem = self._judge_provider(headers.get("authorization", ""))
        if problem is not None:
            return problem
        if not _TOKEN.fullmatch(token):
            return refusal(400, "BadDeviceToken")
        if "apns-topic" not in headers:
            return refusal(400, "MissingTopic")
        if headers["apns-topic"] != self._topic:
            return refusal(400, "DeviceTokenNotForTopic")
        if headers.get("apns-push-type") not in ("alert", "background"):
            return refusal(400, "InvalidPushType")
        if headers["apns-push-type"] == "background" and headers.get("apns-priority") != "5":
            return refusal(400, "BadPriority")
        if not request.body:
            return refusal(400, "PayloadEmpty")
        if len(request.body) > _LARGEST:
            return refusal(413, "PayloadTooLarge")
        try:
            json.loads(request.body)["aps"]
        except (ValueError, KeyError, TypeError):
            return refusal(400, "BadMessageId")
        return Answer(200)

    def _judge_provider(self, authorization: str) -> Answer | None:
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return refusal(403, "MissingProviderToken")
        token, now = text.encode(), self._now()
        if token not in self.web_tokens:
            read = self._read(token)
            if read is None:
                return refusal(403, "InvalidProviderToken")
            key_id, issued = read
            if now - self._updated.get(key_id, -_UPDATE_INTERVAL) < _UPDATE_INTERVAL:
                return refusal(429, "TooManyProviderTokenUpdates")
            self.web_tokens[token] = self._updated[key_id] = now
            self._issued[token] = issued
        if now - self._issued[token] > _OLDEST_TOKEN:
            return refusal(403, "ExpiredProviderToken")
        return None

    def _read(self, token: bytes) -> tuple[str, int] | None:
        """The id of the key that signed the token, and the time of issue. None: the token is not the team's."""
        for key_id, key in self._keys.items():
            read = p256.read_web_token(key, token)
            if read is not None and read[0].get("kid") == key_id and read[1].get("iss") == self._team_id:
                return key_id, read[1]["iat"]
        return None
