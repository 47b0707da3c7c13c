"""An answer that is lost between Redis and the edge costs nothing: for every script, the second attempt answers as
the first would have, and leaves Redis as the first would have."""

import os
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.notifier.store.harness import APNS, KEY, NOW, SMP1, NtfEdge, open_edge, queue
from tests.redis.proxy import Proxy
from tests.support.lua import own_names
from tests.support.store_retry import Retries, Step
from weir.crypto.keys import KeyPair, key_pair
from weir.notifier.outcome import Delivered, Failed, Invalid, RetryLater
from weir.notifier.store.core import LUA
from weir.notifier.store.records import Push, ServiceKeys, Subscription, Token
from weir.redis.resp import as_retry
from weir.wire.address import ServerHost
from weir.wire.ntf.types import DeviceToken, PushProvider, SubError, SubStatus

Scenario = Callable[[NtfEdge, NtfEdge], Awaitable[Step]]
SCENARIOS: dict[str, tuple[str, Scenario]] = {}
DEVICE, DEVICE2 = (DeviceToken(PushProvider.APNS_PROD, letter * 32) for letter in (b"d", b"e"))
MINE, KEY2 = key_pair("x25519", b"m" * 32), key_pair("ed25519", b"k" * 32)
MOVED = ServerHost((b"new.example.org",), b"", SMP1.key_hash)
SERVICE = b"s" * 24


def scenario(script: str) -> Callable[[Scenario], Scenario]:
    """Prepares something and returns the call whose answer is lost."""

    def register(prepare: Scenario) -> Scenario:
        SCENARIOS[prepare.__name__] = (script, prepare)
        return prepare

    return register


async def registered(edge: NtfEdge, key: KeyPair = KEY2, given: DeviceToken = DEVICE) -> Token:
    found = await edge.store.tokens.register(given, key.spki, MINE.public)
    assert found is not None
    return found.token


async def active(edge: NtfEdge, key: KeyPair = KEY2, given: DeviceToken = DEVICE) -> Token:
    token = await registered(edge, key, given)
    await edge.store.tokens.activate(token, token.code)
    return await edge.fetched(token)


async def subscribed(edge: NtfEdge, count: int = 3) -> tuple[bytes, int, list[Subscription]]:
    """Subscriptions of a server that the edge owns."""
    token = await active(edge)
    subs = [await edge.subscription(token, queue(SMP1, b"%024d" % n), KEY2.pkcs8) for n in range(count)]
    epoch = await edge.owned(subs[0].server_id)
    return subs[0].server_id, epoch, subs


async def pushing(edge: NtfEdge) -> tuple[Subscription, Push]:
    sub = await edge.subscription(await active(edge), queue(SMP1, b"n" * 24), KEY2.pkcs8)
    push = (await edge.receive(sub, nonce=b"1" * 24)).push
    assert push is not None
    return sub, push


@scenario("register")
async def register(edge: NtfEdge, other: NtfEdge) -> Step:
    return lambda: edge.store.tokens.register(DEVICE, KEY2.spki, MINE.public)


@scenario("register")
async def register_again(edge: NtfEdge, other: NtfEdge) -> Step:
    await registered(other)
    return lambda: edge.store.tokens.register(DEVICE, KEY2.spki, MINE.public)


@scenario("reverify")
async def reverify(edge: NtfEdge, other: NtfEdge) -> Step:
    push = await edge.store.pushes.claim(await registered(other))
    assert push is not None
    await edge.store.pushes.done(push, Invalid())
    return lambda: edge.store.tokens.register(DEVICE, KEY2.spki, MINE.public)


@scenario("fetch_token")
async def fetch_token(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await registered(other)
    return lambda: edge.store.tokens.fetch(token.id)


@scenario("activate")
async def activate(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await registered(other)
    return lambda: edge.store.tokens.activate(token, token.code)


@scenario("expel")
async def expel(edge: NtfEdge, other: NtfEdge) -> Step:
    await active(other, KEY)
    token = await registered(other)
    return lambda: edge.store.tokens.activate(token, token.code)


@scenario("enrol")
async def enrol(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    return lambda: edge.store.tokens.replace(token, DEVICE2)


@scenario("replace")
async def replace(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.tokens.replace(push.token, DEVICE2)


@scenario("unenrol")
async def unenrol(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    return lambda: edge.store.tokens.replace(token, DEVICE2)


@scenario("set_cron")
async def set_cron(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    return lambda: edge.store.tokens.set_cron(token, 30)


@scenario("set_cron")
async def no_cron(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    await other.store.tokens.set_cron(token, 30)
    return lambda: edge.store.tokens.set_cron(token, 0)


@scenario("cron")
async def cron(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    await other.store.tokens.set_cron(token, 30)
    core, p = other.store.core, token.partition
    await core.ask(p, b"ZADD", core.keys.cron(p), 1, token.id)
    return lambda: edge.store.pushes.due(p, {APNS: 10})


@scenario("drop_token")
async def drop_token(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.tokens.delete(push.token)


@scenario("drop_subscriptions")
async def drop_subscriptions(edge: NtfEdge, other: NtfEdge) -> Step:
    """The index of the notifier is left for the sweeper."""
    token = await active(other)
    sub = await other.subscription(token, queue(SMP1, b"n" * 24), KEY2.pkcs8)

    async def step() -> Any:
        deleted = await edge.store.tokens.delete(token)
        await sweep(other)
        return deleted, await other.store.notifications.find(sub.server_id, b"n" * 24)

    return step


async def sweep(edge: NtfEdge) -> None:
    cursor = None
    while cursor != 0:
        swept = await edge.store.sweeper.sweep_slice(cursor or 0)
        assert swept is not None
        cursor = swept.cursor


@scenario("claim_notifier")
async def claim_notifier(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    return lambda: edge.store.subscriptions.create(token, queue(SMP1, b"n" * 24), KEY2.pkcs8)


@scenario("subscribe")
async def subscribe(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    await other.owned(await other.store.servers.ensure(SMP1))
    return lambda: edge.store.subscriptions.create(token, queue(SMP1, b"n" * 24), KEY2.pkcs8)


@scenario("keep_notifier")
async def keep_notifier(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await active(other)
    return lambda: edge.store.subscriptions.create(token, queue(SMP1, b"n" * 24), KEY2.pkcs8)


@scenario("fetch_subscription")
async def fetch_subscription(edge: NtfEdge, other: NtfEdge) -> Step:
    _, _, [sub] = await subscribed(other, 1)
    return lambda: edge.store.subscriptions.fetch(sub.id)


@scenario("readdress")
async def readdress(edge: NtfEdge, other: NtfEdge) -> Step:
    sub, push = await pushing(other)
    return lambda: edge.store.subscriptions.create(push.token, queue(MOVED, sub.queue.notifier_id), KEY2.pkcs8)


@scenario("unsubscribe")
async def unsubscribe(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(other)
    await other.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    return lambda: edge.store.subscriptions.delete(subs[0])


@scenario("free_notifier")
async def free_notifier(edge: NtfEdge, other: NtfEdge) -> Step:
    _, _, [sub] = await subscribed(other, 1)
    return lambda: edge.store.subscriptions.delete(sub)


@scenario("received")
async def received(edge: NtfEdge, other: NtfEdge) -> Step:
    sub, push = await pushing(other)
    await other.store.pushes.done(push, Delivered())
    return lambda: edge.receive(sub, nonce=b"2" * 24)


@scenario("received")
async def received_during_a_push(edge: NtfEdge, other: NtfEdge) -> Step:
    sub, _ = await pushing(other)
    return lambda: edge.receive(sub, nonce=b"2" * 24)


@scenario("received")
async def received_without_room(edge: NtfEdge, other: NtfEdge) -> Step:
    _, _, subs = await subscribed(other, 8)
    for n, sub in enumerate(subs):
        await other.receive(sub, nonce=b"%024d" % n, claim=())
    return lambda: edge.receive(subs[0], nonce=b"2" * 24, claim=())


@scenario("claim")
async def claim(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await registered(other)
    return lambda: edge.store.pushes.claim(token)


@scenario("due")
async def due(edge: NtfEdge, other: NtfEdge) -> Step:
    token = await registered(other)
    return lambda: edge.store.pushes.due(token.partition, {APNS: 10})


@scenario("done")
async def done_delivered(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.pushes.done(push, Delivered())


@scenario("done")
async def done_and_the_next(edge: NtfEdge, other: NtfEdge) -> Step:
    sub, push = await pushing(other)
    await other.receive(sub, nonce=b"2" * 24)
    return lambda: edge.store.pushes.done(push, Failed())


@scenario("done")
async def done_verification(edge: NtfEdge, other: NtfEdge) -> Step:
    push = await other.store.pushes.claim(await registered(other))
    assert push is not None
    return lambda: edge.store.pushes.done(push, Delivered())


@scenario("done")
async def done_invalid(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.pushes.done(push, Invalid())


@scenario("done")
async def done_later(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.pushes.done(push, RetryLater())


@scenario("done")
async def given_back(edge: NtfEdge, other: NtfEdge) -> Step:
    _, push = await pushing(other)
    return lambda: edge.store.pushes.give_back(push)


@scenario("add_server")
async def add_server(edge: NtfEdge, other: NtfEdge) -> Step:
    return lambda: edge.store.servers.ensure(SMP1)


@scenario("tell_moved")
async def tell_moved(edge: NtfEdge, other: NtfEdge) -> Step:
    await other.owned(await other.store.servers.ensure(SMP1))
    return lambda: edge.store.servers.ensure(MOVED)


@scenario("settle_address")
async def settle_address(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    await edge.store.servers.ensure(MOVED)
    return lambda: edge.store.servers.verified(server_id, epoch, MOVED)


@scenario("set_credentials")
async def set_credentials(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id = await edge.store.servers.ensure(SMP1)
    return lambda: edge.store.servers.set_credentials(server_id, ServiceKeys(b"certificate", b"key"))


@scenario("own")
async def own(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id = await edge.store.servers.ensure(SMP1)
    return lambda: edge.store.servers.own(server_id)


@scenario("take_share")
async def take_share(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await other.owned(server_id)
    await other.store.servers.release(server_id, epoch)
    return lambda: edge.store.servers.own(server_id)


@scenario("release_share")
async def release_share(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    return lambda: edge.store.servers.release(server_id, epoch)


@scenario("set_session")
async def set_session(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, _ = await subscribed(edge)
    return lambda: edge.store.servers.disconnected(server_id, epoch)


@scenario("pending_page")
async def pending_page(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, _ = await subscribed(edge)
    return lambda: edge.pending(server_id, epoch, page=2)


@scenario("pick_subscriptions")
async def pick_subscriptions(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(edge)
    return lambda: edge.store.servers.to_subscribe(server_id, epoch, [subs[0].id])


@scenario("subscribed")
async def subscribed_as_a_service(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(edge)
    return lambda: edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)


@scenario("refused")
async def refused(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(edge)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    errors: list[tuple[Subscription, SubStatus | SubError]] = [(subs[0], SubError(b"text")), (subs[1], SubStatus.AUTH)]
    return lambda: edge.store.servers.errors(server_id, epoch, errors)


@scenario("ended")
async def ended(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(edge)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    return lambda: edge.store.servers.ended(server_id, epoch, subs[0].queue.notifier_id)


@scenario("dissociate_page")
async def dissociate_page(edge: NtfEdge, other: NtfEdge) -> Step:
    server_id, epoch, subs = await subscribed(edge)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)

    async def step() -> None:
        await edge.store.servers.remove_service(server_id, epoch)  # its answer counts the pages that arrived

    return step


def passing(key: bytes) -> bool:
    """Leases, and what is there for a moment."""
    return b":e:" in key[:10] or key.startswith((b"{ntf}:sweeper", b"{ntf}:stats:"))


RETRIES = Retries(open_edge, {"poll": 1000.0, "lease": 100.0}, passing, frozenset())


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_lost_answer(proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, prepare = SCENARIOS[name]

    async def prepared(edge: NtfEdge, other: NtfEdge) -> Step:
        monkeypatch.setattr(os, "urandom", random.Random(name).randbytes)  # the same ids and keys in both runs
        return await prepare(edge, other)

    whole, broken = await RETRIES.lose_an_answer(proxy, script, prepared, monkeypatch)
    assert broken.result == whole.result
    assert broken.contents == whole.contents
    assert broken.events == whole.events


def test_every_script_has_a_scenario() -> None:
    assert {script for script, _ in SCENARIOS.values()} == set(own_names(LUA))


async def test_an_older_notification_does_not_replace_a_newer_one(proxy: Proxy) -> None:
    """The answer was lost with the connection. Another edge has received the queue's next notification since."""
    direct = await open_edge(f"redis://{proxy._target[0]}:{proxy._target[1]}")
    await direct.store.core.ask(0, b"FLUSHALL")
    edge = await open_edge(proxy.url)
    direct.store.leases.renew()
    sub, push = await pushing(direct)
    await direct.store.pushes.done(push, Delivered())
    core = direct.store.core
    head = (NOW + 1).to_bytes(8, "big") + b"2" * 24
    p = core.partition(sub.id)
    await direct.receive(sub, ts=NOW + 2, nonce=b"3" * 24, claim=())
    wire = core.script_wire(
        "received", [core.keys.subscription(p, sub.id)], [head, b"\x18" + b"n" * 24 + b"meta", 6, b"c", 1000, b""]
    )
    assert await core.muxes[p].ask(as_retry(wire), script=True) == 0
    [again] = await direct.due()
    assert [message.nonce for message in again.messages] == [b"3" * 24]
    await edge.close()
    await direct.close()
