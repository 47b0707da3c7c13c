"""The stand-in of Apple's service judges requests as Apple's documentation says."""

import asyncio
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from weir.bench.standins.apns import Apns
from weir.bench.standins.authority import Authority
from weir.crypto import p256

KEY = p256.generate()
DEVICE = "ab" * 32


@dataclass
class World:
    standin: Apns
    context: ssl.SSLContext
    now: list[float] = field(default_factory=lambda: [time.time()])

    def headers(self, **changed: str) -> dict[str, str]:
        token = p256.web_token(KEY, {"kid": "KEY4567890"}, {"iss": "TEAM567890", "iat": int(self.now[0])})
        return {
            "authorization": f"bearer {token.decode()}",
            "apns-topic": "dev.weir.app",
            "apns-push-type": "alert",
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }

    async def post(
        self, headers: dict[str, str], *, path: str = f"/3/device/{DEVICE}", body: bytes = b'{"aps":{}}'
    ) -> tuple[int, str]:

        def send() -> tuple[int, str]:
            url = f"https://localhost:{self.standin.server.port}{path}"
            request = urllib.request.Request(url, data=body, headers=headers, method="POST")
            try:
                with urllib.request.urlopen(request, context=self.context, timeout=10) as response:
                    return response.status, ""
            except urllib.error.HTTPError as error:
                return error.code, json.loads(error.read())["reason"]

        return await asyncio.to_thread(send)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    authority = Authority()
    now = [time.time()]
    standin = Apns(authority, key=KEY.public_key(), now=lambda: now[0])
    await standin.start()
    yield World(standin, authority.client_context(), now)
    await standin.close()


async def test_what_is_right(world: World) -> None:
    assert await world.post(world.headers()) == (200, "")
    assert await world.post(world.headers(apns_push_type="background", apns_priority="5")) == (200, "")
    assert [one.target for one in world.standin.program.arrived] == [DEVICE, DEVICE]


async def test_what_is_wrong(world: World) -> None:
    good = world.headers()
    assert await world.post(good, path="/3/devices/x") == (404, "BadPath")
    assert await world.post(good, path="/3/device/xyz") == (400, "BadDeviceToken")
    for header, answer in (
        ("apns-topic", (400, "MissingTopic")),
        ("apns-push-type", (400, "InvalidPushType")),
        ("authorization", (403, "MissingProviderToken")),
    ):
        assert await world.post({name: value for name, value in good.items() if name != header}) == answer
    assert await world.post(world.headers(apns_topic="other")) == (400, "DeviceTokenNotForTopic")
    assert await world.post(world.headers(apns_push_type="background")) == (400, "BadPriority")
    assert await world.post(good, body=b"") == (400, "PayloadEmpty")
    assert await world.post(good, body=bytes(4097)) == (413, "PayloadTooLarge")
    assert await world.post(world.headers(authorization="bearer a.b.c")) == (403, "InvalidProviderToken")
    assert world.standin.program.arrived == []


async def test_web_tokens_that_are_too_new_or_too_old(world: World) -> None:
    first = world.headers()
    assert (await world.post(first))[0] == 200
    world.now[0] += 60
    assert await world.post(world.headers()) == (429, "TooManyProviderTokenUpdates")
    assert (await world.post(first))[0] == 200
    world.now[0] += 3600
    assert await world.post(first) == (403, "ExpiredProviderToken")
    assert (await world.post(world.headers()))[0] == 200
