"""Pushes through a stand-in that speaks Apple's protocol over TLS and HTTP/2."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.notifier.push.pushes import message, opened, push, token
from tests.support.ports import free_port
from weir.bench.standins.apns import Apns as Standin
from weir.bench.standins.apns import refusal
from weir.bench.standins.authority import Authority
from weir.bench.standins.server import Answer
from weir.crypto import p256
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.push.apns import INTERVAL, Apns, WebTokens
from weir.notifier.push.http.client import Client
from weir.notifier.push.http.exchange import Origin
from weir.notifier.push.http.pool import Pool
from weir.notifier.push.limits import FAILURES
from weir.notifier.store.records import PushKind
from weir.wire.ntf.types import DeviceToken, InvalidReason, PushProvider

KEY = p256.generate()
TOPIC = "dev.weir.app"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0 // INTERVAL * INTERVAL

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    standin: Standin
    apns: Apns
    clock: Clock


def provider(
    authority: Authority,
    port: int,
    *,
    topic: str = TOPIC,
    clock: Clock,
    key: p256.PrivateKey = KEY,
    key_id: str = "KEY4567890",
) -> Apns:
    tokens = WebTokens(key, key_id=key_id, team_id="TEAM567890", now=clock)
    client = Client(Pool(authority.client_context(), allow_local=True), 5.0)
    return Apns(client, Origin("localhost", port), tokens, topic)


@pytest.fixture
async def world(authority: Authority) -> AsyncIterator[World]:
    clock = Clock()
    standin = Standin(authority, key=KEY.public_key(), topic=TOPIC, now=clock)
    await standin.start()
    apns = provider(authority, standin.server.port, clock=clock)
    yield World(standin, apns, clock)
    await apns.close()
    await standin.close()


async def test_edges_with_the_old_and_the_new_key_of_a_team_push_side_by_side(
    world: World, authority: Authority
) -> None:
    """While a fleet is given another key, some edges have the old key and some the new one."""
    new = p256.generate()
    other = provider(authority, world.standin.server.port, clock=world.clock, key=new, key_id="NEW4567890")
    assert await other.send(push(message())) == Failed()
    world.standin.trust(new.public_key(), "NEW4567890")
    for apns in (world.apns, other, world.apns):
        assert await apns.send(push(message())) == Delivered()
    await other.close()


async def test_messages_arrive_as_an_alert(world: World) -> None:
    one = push(message(1), message(2))
    assert await world.apns.send(one) == Delivered()
    [arrived] = world.standin.program.arrived
    assert arrived.target.encode() == one.token.device.token
    assert arrived.headers["apns-topic"] == TOPIC
    assert arrived.headers["apns-push-type"] == "alert"
    assert "apns-priority" not in arrived.headers
    assert opened(one.token, arrived.body) == [message(1), message(2)]
    assert len(arrived.body) <= 4096


@pytest.mark.parametrize("kind", [PushKind.VERIFICATION, PushKind.CHECK])
async def test_what_wakes_the_app_stays_in_the_background(world: World, kind: PushKind) -> None:
    one = push(kind=kind)
    assert await world.apns.send(one) == Delivered()
    [arrived] = world.standin.program.arrived
    assert (arrived.headers["apns-push-type"], arrived.headers["apns-priority"]) == ("background", "5")
    assert opened(one.token, arrived.body) == (one.token.code if kind is PushKind.VERIFICATION else None)


@pytest.mark.parametrize(
    ("answer", "requests", "outcome"),
    [
        (Answer(200), 1, Delivered()),
        (refusal(400, "BadDeviceToken"), 1, Invalid(InvalidReason.BAD)),
        (refusal(400, "DeviceTokenNotForTopic"), 1, Invalid(InvalidReason.TOPIC)),
        (refusal(400, "TopicDisallowed"), 1, Failed()),
        (refusal(400, "BadExpirationDate"), 1, Failed()),
        (refusal(403, "ExpiredProviderToken"), 1, Failed()),
        (refusal(403, "InvalidProviderToken"), 1, Failed()),
        (refusal(403, "Forbidden"), 1, Failed()),
        (refusal(404, "BadPath"), 1, Failed()),
        (refusal(410, "ExpiredToken", timestamp=1), 1, Invalid(InvalidReason.EXPIRED)),
        (refusal(410, "Unregistered", timestamp=1), 1, Invalid(InvalidReason.UNREGISTERED)),
        (refusal(410, "Gone"), 2, RetryLater()),
        (Answer(410), 2, RetryLater()),
        (refusal(413, "PayloadTooLarge"), 1, Failed()),
        (refusal(429, "TooManyRequests"), 1, RetryLater()),
        (refusal(429, "TooManyRequests")._replace(headers=(("retry-after", "7"),)), 1, RetryLater(7.0)),
        (refusal(429, "TooManyProviderTokenUpdates"), 1, RetryLater(2.0)),
        (refusal(500, "InternalServerError"), 1, RetryLater()),
        (refusal(503, "ServiceUnavailable"), 2, RetryLater()),
        (refusal(503, "Shutdown"), 2, RetryLater()),
        (Answer(failure="reset"), 2, RetryLater()),
        (Answer(failure="close"), 2, RetryLater()),
        (Answer(failure="refuse"), 4, RetryLater()),
        (Answer(failure="goaway"), 4, RetryLater()),
        (Answer(400, body=b"no json"), 1, Failed()),
        (Answer(410, body=b'{"reason":5}'), 2, RetryLater()),
        (Answer(400, body=b'["BadDeviceToken"]'), 1, Failed()),
        (Answer(302, (("location", "https://localhost/"),)), 1, Failed()),
    ],
)
async def test_answers(world: World, answer: Answer, requests: int, outcome: Outcome) -> None:
    """The whole table. Two requests: an attempt, and one retry on a fresh connection. Refused ones do not count."""
    world.standin.program.always = answer
    result = await world.apns.send(push(message()))
    if isinstance(outcome, RetryLater) and outcome.after == 2.0:
        assert isinstance(result, RetryLater)
        assert result.after == pytest.approx(2.0, abs=0.1)
    else:
        assert result == outcome
    assert world.standin.program.count == requests
    assert world.standin.server.behaviour.accepted == requests


@pytest.mark.parametrize(
    "answer",
    [Answer(503), Answer(410), Answer(failure="close"), Answer(failure="refuse"), Answer(failure="goaway")],
)
async def test_behaviour_8_one_retry_on_a_fresh_connection(world: World, answer: Answer) -> None:
    world.standin.program.answer_next(answer)
    one = push(message())
    assert await world.apns.send(one) == Delivered()
    assert world.standin.program.count == 2
    assert world.standin.server.behaviour.accepted == 2
    assert len(world.standin.program.arrived) == 1


async def test_goaway_under_load_loses_and_repeats_nothing(world: World) -> None:
    """Every push arrives once: what the server did not process is sent again, what it did process is not."""
    program = world.standin.program
    program.always = Answer(delay=0.01)
    world.standin.server.behaviour.streams = 20
    pushes = [push(message(), of=token(DeviceToken(PushProvider.APNS_PROD, b"%064x" % n))) for n in range(300)]
    running = [asyncio.create_task(world.apns.send(one)) for one in pushes]
    await program.wait_for(100)
    world.standin.server.go_away()
    assert set(await asyncio.gather(*running)) == {Delivered()}
    assert sorted(one.target for one in program.arrived) == [f"{n:064x}" for n in range(300)]
    assert world.standin.server.behaviour.accepted >= 2


async def test_a_device_token_that_is_no_path_is_not_sent(world: World) -> None:
    for wrong in (b"", b"../../x", b"ab cd", b"\r\n", b"zz"):
        device = DeviceToken(PushProvider.APNS_PROD, wrong)
        assert await world.apns.send(push(message(), of=token(device))) == Invalid(InvalidReason.BAD)
    assert world.standin.program.count == 0


async def test_one_web_token_for_the_whole_fleet(world: World, authority: Authority) -> None:
    """Two edges, and clocks that differ by minutes: Apple sees one token, and one more after 40 minutes."""
    other_clock = Clock()
    other_clock.now += 300
    other = provider(authority, world.standin.server.port, clock=other_clock)
    for apns in (world.apns, other):
        assert await apns.send(push(message())) == Delivered()
    assert len(world.standin.web_tokens) == 1
    world.clock.now += INTERVAL - 1
    assert await world.apns.send(push(message())) == Delivered()
    assert len(world.standin.web_tokens) == 1
    world.clock.now += 1
    assert await world.apns.send(push(message())) == Delivered()
    assert len(world.standin.web_tokens) == 2
    await other.close()


def test_web_tokens_are_between_20_and_60_minutes_apart() -> None:
    assert 20 * 60 < INTERVAL < 60 * 60
    clock = Clock()
    tokens = WebTokens(KEY, key_id="K", team_id="T", now=clock)
    clock.now += INTERVAL - 1
    read = p256.read_web_token(KEY.public_key(), tokens.authorization().removeprefix(b"bearer "))
    assert read == ({"kid": "K", "alg": "ES256"}, {"iss": "T", "iat": clock.now - INTERVAL + 1})


async def test_429_stops_all_pushes_to_the_host_and_is_obeyed(world: World) -> None:
    world.standin.program.answer_next(
        refusal(429, "TooManyProviderTokenUpdates")._replace(headers=(("retry-after", "60"),))
    )
    assert await world.apns.send(push(message())) == RetryLater(60.0)
    assert world.apns.wait(push(message())) == pytest.approx(60, abs=1)
    refused = await world.apns.send(push(message()))
    assert isinstance(refused, RetryLater)
    assert world.standin.program.count == 1
    assert world.apns.numbers()["breaker_open"] == 1


async def test_429_of_one_device_stops_no_other(world: World) -> None:
    world.standin.program.answer_next(refusal(429, "TooManyRequests"))
    assert await world.apns.send(push(message())) == RetryLater()
    assert world.apns.wait(push(message())) == 0
    assert await world.apns.send(push(message())) == Delivered()


async def test_a_host_that_is_down_opens_the_breaker(authority: Authority) -> None:
    apns = provider(authority, free_port(), clock=Clock())
    for _ in range(FAILURES):
        assert await apns.send(push(message())) == RetryLater()
    assert apns.wait(push(message())) > 1
    assert apns.answers["Unreachable"] == FAILURES
    assert apns.numbers() == {"connections": 0, "breaker_open": 1, "breaker_half_open": 0}
    await apns.close()


async def test_a_wrong_key_is_one_line_in_the_log(
    world: World, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    apns = provider(authority, world.standin.server.port, clock=world.clock, key=p256.generate())
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert await apns.send(push(message())) == Failed()
    assert [record.getMessage() for record in caplog.records] == [
        "APNs refuses this router: InvalidProviderToken; check [apns] key, key_id, team_id and topic"
    ]
    await apns.close()


async def test_answers_are_counted_without_what_the_server_made_up(world: World) -> None:
    world.standin.program.answer_next(refusal(400, "ab" * 32), refusal(400, "BadDeviceToken"))
    for _ in range(3):
        await world.apns.send(push(message()))
    assert world.apns.answers == {"400": 1, "400 BadDeviceToken": 1, "200": 1}


async def test_messages_of_which_none_fits(world: World) -> None:
    assert await world.apns.send(push(message(meta=4000))) == Failed()
    assert world.standin.program.count == 0


async def test_the_body_is_json_that_apple_takes(world: World) -> None:
    await world.apns.send(push(message()))
    [arrived] = world.standin.program.arrived
    assert json.loads(arrived.body)["aps"]["mutable-content"] == 1
