"""Pushes through a stand-in that speaks the protocol of Web Push over TLS, HTTP/2 and HTTP/1.1."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.notifier.push.pushes import message, opened, push, token
from weir.bench.standins.authority import Authority
from weir.bench.standins.server import Answer
from weir.bench.standins.web_push import WebPush as Standin
from weir.crypto import p256
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.pool import Pool
from weir.notifier.push.limits import FAILURES
from weir.notifier.push.vapid import Vapid, VapidFile, VapidKeys
from weir.notifier.push.web_push import WebPush
from weir.notifier.store.records import Push, PushKind
from weir.wire.ntf.types import InvalidReason

KEY = p256.generate()


@dataclass
class World:
    standin: Standin
    web_push: WebPush

    def push(self, *, kind: PushKind = PushKind.MESSAGES) -> Push:
        subscriber = self.standin.subscribe()
        return push(message(), kind=kind, of=token(subscriber.token.device_token))


def provider(authority: Authority, *, allow_local: bool = True, keys: VapidKeys | None = None) -> WebPush:
    client = Client(Pool(authority.client_context(), allow_local=allow_local), 5.0)
    return WebPush(client, keys or Vapid(KEY, "mailto:operator@example.org"))


@pytest.fixture(params=[False, True], ids=["http2", "http1"])
async def world(authority: Authority, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    standin = Standin(authority, vapid=KEY.public_key(), http1_only=request.param)
    await standin.start()
    web_push = provider(authority)
    yield World(standin, web_push)
    await web_push.close()
    await standin.close()


@pytest.mark.parametrize("kind", PushKind)
async def test_pushes_arrive_and_only_the_device_reads_them(world: World, kind: PushKind) -> None:
    one = world.push(kind=kind)
    assert await world.web_push.send(one) == Delivered()
    [arrived] = world.standin.program.arrived
    expected = {PushKind.MESSAGES: [message()], PushKind.VERIFICATION: one.token.code, PushKind.CHECK: None}
    assert opened(one.token, arrived.plain) == expected[kind]
    assert len(arrived.body) <= 4096
    assert arrived.headers["ttl"] == "2592000"
    assert arrived.headers["urgency"] == "high"
    assert arrived.headers["content-encoding"] == "aes128gcm"


@pytest.mark.parametrize(
    ("answer", "requests", "outcome"),
    [
        (Answer(200), 1, Delivered()),
        (Answer(201), 1, Delivered()),
        (Answer(202), 1, Delivered()),
        (Answer(301, (("location", "https://localhost/elsewhere"),)), 1, Failed()),
        (Answer(307, (("location", "http://169.254.169.254/"),)), 1, Failed()),
        (Answer(400), 1, Failed()),
        (Answer(401), 1, Failed()),
        (Answer(403), 1, Failed()),
        (Answer(404), 1, Invalid(InvalidReason.UNREGISTERED)),
        (Answer(410), 1, Invalid(InvalidReason.UNREGISTERED)),
        (Answer(413), 1, Failed()),
        (Answer(429, (("retry-after", "9"),)), 1, RetryLater(9.0)),
        (Answer(500), 1, RetryLater()),
        (Answer(502), 1, RetryLater()),
        (Answer(503), 2, RetryLater()),
        (Answer(503, (("retry-after", "9"),)), 1, RetryLater(9.0)),
        (Answer(failure="close"), 2, RetryLater()),
    ],
)
async def test_answers(world: World, answer: Answer, requests: int, outcome: Outcome) -> None:
    """Redirects are not followed: their number of requests is one."""
    world.standin.program.always = answer
    assert await world.web_push.send(world.push()) == outcome
    assert world.standin.program.count == requests


async def test_behaviour_8_one_retry_on_a_fresh_connection(world: World) -> None:
    world.standin.program.answer_next(Answer(failure="close"))
    assert await world.web_push.send(world.push()) == Delivered()
    assert world.standin.server.behaviour.accepted == 2


async def test_a_subscription_that_has_expired(world: World) -> None:
    one = world.push()
    world.standin.subscribers.clear()
    assert await world.web_push.send(one) == Invalid(InvalidReason.UNREGISTERED)


async def test_another_vapid_key_is_refused(world: World, authority: Authority) -> None:
    other = provider(authority, keys=Vapid(p256.generate(), None))
    assert await other.send(world.push()) == Failed()
    assert world.standin.program.arrived == []
    await other.close()


async def test_a_subscription_of_an_older_vapid_key_gets_its_pushes(
    world: World, authority: Authority, tmp_path: Path
) -> None:
    """The current key is refused once for each subscription. The key that is accepted is tried first from then on."""
    file = tmp_path / "vapid.key"
    file.write_bytes(p256.keys_to_pem(p256.generate(), p256.generate(), KEY))
    rotated = provider(authority, keys=VapidFile(file, None))
    one = world.push()
    for requests in (3, 4, 5):
        assert await rotated.send(one) == Delivered()
        assert world.standin.program.count == requests
    assert await rotated.send(world.push()) == Delivered()
    assert world.standin.program.count == 8
    await rotated.close()


async def test_a_subscription_that_wants_none_of_the_keys(world: World, authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "vapid.key"
    file.write_bytes(p256.keys_to_pem(p256.generate(), p256.generate()))
    other = provider(authority, keys=VapidFile(file, None))
    assert await other.send(world.push()) == Failed()
    assert world.standin.program.count == 2
    await other.close()


async def test_private_endpoints_are_refused(world: World, authority: Authority) -> None:
    strict = provider(authority, allow_local=False)
    assert await strict.send(world.push()) == Invalid(InvalidReason.BAD)
    assert world.standin.server.behaviour.accepted == 0
    assert strict.answers == {"Forbidden": 1}
    await strict.close()


async def test_a_server_that_fails_has_a_gate_of_its_own(world: World, authority: Authority) -> None:
    other = Standin(authority, vapid=KEY.public_key())
    await other.start()
    other.program.always = Answer(500)
    failing = [push(message(), of=token(other.subscribe().token.device_token)) for _ in range(FAILURES)]
    for one in failing:
        assert await world.web_push.send(one) == RetryLater()
    assert world.web_push.wait(failing[0]) > 1
    assert world.web_push.wait(world.push()) == 0
    assert await world.web_push.send(world.push()) == Delivered()
    refused = await world.web_push.send(failing[0])
    assert isinstance(refused, RetryLater)
    assert other.program.count == FAILURES
    assert world.web_push.lane(failing[0]) == other.origin
    await other.close()


async def test_messages_of_which_none_fits(world: World) -> None:
    one = world.push()
    assert await world.web_push.send(push(message(meta=4000), of=one.token)) == Failed()
    assert world.standin.program.count == 0
