"""TNEW, TVFY, TRPL, TCRN, TDEL."""

import asyncio

import pytest

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import KEY, SMP1, NtfEdge, device, queue
from weir.crypto.keys import dh, generate
from weir.notifier.outcome import Delivered, Invalid
from weir.notifier.store.records import PushKind, Status, Token
from weir.wire.ntf.types import InvalidReason, TokenInvalid, TokenStatus

OTHER_KEY = generate("ed448")


async def test_a_new_token(open_any: OpenEdge) -> None:
    edge = await open_any()
    mine, given = generate(), device()
    found = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert found is not None and found.created
    token = found.token
    assert (token.device, token.verify_key, token.status, token.cron) == (given, KEY.spki, TokenStatus.REGISTERED, 0)
    assert dh(token.dh_public, mine.private) == token.dh_secret
    assert await edge.fetched(token) == token
    assert (await edge.store.stats.counts())["tokens"] == 1


async def test_behaviour_2_a_repeated_tnew_finds_the_token(open_any: OpenEdge) -> None:
    edge = await open_any()
    mine, given = generate(), device()
    first = await edge.store.tokens.register(given, KEY.spki, mine.public)
    again = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert first is not None and again is not None
    assert again.token == first.token and not again.created
    assert (await edge.store.stats.counts())["tokens"] == 1


async def test_behaviour_2_another_dh_secret_is_refused(open_any: OpenEdge) -> None:
    edge = await open_any()
    given = device()
    await edge.registered(given)
    assert await edge.store.tokens.register(given, KEY.spki, generate().public) is None


async def test_behaviour_2_another_verify_key_makes_another_token(open_any: OpenEdge) -> None:
    edge = await open_any()
    given = device()
    first, second = await edge.registered(given), await edge.registered(given, OTHER_KEY)
    assert first.id != second.id
    assert (await edge.store.stats.counts())["tokens"] == 2


async def test_raced_tnews_make_one_token(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    mine, given = generate(), device()
    found = await asyncio.gather(
        *(one.store.tokens.register(given, KEY.spki, mine.public) for one in (edge, other) for _ in range(5))
    )
    assert len({each.token.id for each in found if each is not None}) == 1
    assert [each.created for each in found if each is not None].count(True) == 1


@pytest.mark.parametrize("reason", [None, *InvalidReason])
async def test_behaviour_14_tnew_repairs_the_status(open_one: OpenEdge, reason: InvalidReason | None) -> None:
    edge = await open_one()
    mine, given = generate(), device()
    found = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert found is not None
    push = await edge.store.pushes.claim(found.token)
    assert push is not None
    assert await edge.store.pushes.done(push, Invalid(reason)) is None
    assert (await edge.fetched(found.token)).status == TokenInvalid(reason)
    again = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert again is not None and again.token.status is TokenStatus.REGISTERED
    push = await edge.store.pushes.claim(again.token)
    assert push is not None and push.kind is PushKind.VERIFICATION and push.token.code == found.token.code


async def test_behaviour_14_an_active_token_stays_active(open_one: OpenEdge) -> None:
    edge = await open_one()
    mine, given = generate(), device()
    found = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert found is not None
    await edge.store.tokens.activate(found.token, found.token.code)
    again = await edge.store.tokens.register(given, KEY.spki, mine.public)
    assert again is not None and again.token.status is TokenStatus.ACTIVE
    assert (await edge.store.pushes.claim(again.token)) is not None, "the verification is sent again"


async def test_tvfy_needs_the_code_and_the_status(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.registered()
    assert await edge.store.tokens.activate(token, b"wrong" * 6) is Status.AUTH
    assert await edge.store.tokens.activate(token, token.code) is Status.OK
    assert await edge.store.tokens.activate(token, token.code) is Status.OK, "a client repeats it after a lost answer"
    assert (await edge.fetched(token)).status is TokenStatus.ACTIVE
    sub = await edge.subscription(await edge.fetched(token))
    push = (await edge.receive(sub)).push
    assert push is not None
    await edge.store.pushes.done(push, Invalid())
    assert await edge.store.tokens.activate(await edge.fetched(token), token.code) is Status.AUTH


async def test_tvfy_meets_a_confirmation(open_one: OpenEdge) -> None:
    """The push's outcome is stored while TVFY is on its way: the record that the session has is outdated."""
    edge = await open_one()
    token = await edge.registered()
    push = await edge.store.pushes.claim(token)
    assert push is not None
    await edge.store.pushes.done(push, Delivered())
    assert await edge.store.tokens.activate(token, token.code) is Status.OK


async def test_tvfy_deletes_the_devices_other_tokens(open_any: OpenEdge) -> None:
    edge = await open_any()
    given = device()
    old = await edge.active(given)
    await asyncio.gather(*(edge.subscription(old) for _ in range(30)))
    sub = await edge.subscription(old, queue(SMP1, b"n" * 24))
    bystander = await edge.active()
    new = await edge.registered(given, OTHER_KEY)
    assert await edge.store.tokens.activate(new, new.code) is Status.OK
    assert await edge.store.tokens.fetch(old.id) is None
    assert await edge.store.subscriptions.fetch(sub.id) is None
    assert await edge.store.tokens.fetch(bystander.id) is not None
    counts = await edge.store.stats.counts()
    assert (counts["tokens"], counts["subscriptions"]) == (2, 0)
    assert await edge.subscription(await edge.fetched(new), queue(SMP1, b"n" * 24)), "its notifiers are free"


async def test_two_tvfys_of_a_device_leave_one_token(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    for _ in range(10):
        given = device()
        first, second = await edge.registered(given), await other.registered(given, OTHER_KEY)
        statuses = await asyncio.gather(
            edge.store.tokens.activate(first, first.code), other.store.tokens.activate(second, second.code)
        )
        left = [await edge.store.tokens.fetch(token.id) for token in (first, second)]
        winners = [status is Status.OK for status in statuses]
        assert winners.count(True) == 1, "the loser hears AUTH, because the winner has deleted its token"
        assert [token is not None for token in left] == winners


async def test_behaviour_16_trpl_keeps_the_dh_key(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    sub = await edge.subscription(token)
    given = device()
    assert await edge.store.tokens.replace(token, given) is Status.OK
    replaced = await edge.fetched(token)
    assert replaced.device == given and replaced.status is TokenStatus.REGISTERED and replaced.code != token.code
    assert (replaced.dh_private, replaced.dh_secret) == (token.dh_private, token.dh_secret)
    push = await edge.store.pushes.claim(replaced)
    assert push is not None and push.kind is PushKind.VERIFICATION and push.token == replaced
    found = await edge.store.subscriptions.fetch(sub.id)
    assert found is not None, "subscriptions stay"


async def test_the_new_device_is_the_tokens_only_one(open_any: OpenEdge) -> None:
    edge = await open_any()
    old, new = device(), device()
    token = await edge.registered(old)
    await edge.store.tokens.replace(token, new)
    on_new = await edge.store.tokens.register(new, KEY.spki, generate().public)
    assert on_new is None, "the same key with another DH secret"
    on_old = await edge.registered(old)
    assert on_old.id != token.id, "the old device is free"
    other = await edge.registered(new, OTHER_KEY)
    assert await edge.store.tokens.activate(other, other.code) is Status.OK
    assert await edge.store.tokens.fetch(token.id) is None


async def test_trpl_onto_a_device_with_the_same_key_is_refused(open_one: OpenEdge) -> None:
    edge = await open_one()
    taken = device()
    await edge.registered(taken)
    token = await edge.registered()
    assert await edge.store.tokens.replace(token, taken) is Status.AUTH
    assert await edge.fetched(token) == token


async def test_trpl_with_the_same_device(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    assert await edge.store.tokens.replace(token, token.device) is Status.OK
    replaced = await edge.fetched(token)
    assert await edge.store.tokens.activate(replaced, replaced.code) is Status.OK


async def test_an_outcome_of_the_old_device_means_nothing_for_the_new_one(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.registered()
    push = await edge.store.pushes.claim(token)
    assert push is not None
    await edge.store.tokens.replace(token, device())
    assert await edge.store.pushes.done(push, Invalid(InvalidReason.BAD)) is None
    assert (await edge.fetched(token)).status is TokenStatus.REGISTERED
    again = await edge.store.pushes.claim(await edge.fetched(token))
    assert again is not None and again.token.device != push.token.device


async def test_tdel(open_any: OpenEdge) -> None:
    edge = await open_any()
    given = device()
    token = await edge.active(given)
    subs = [await edge.subscription(token) for _ in range(3)]
    assert await edge.store.tokens.delete(token) is Status.OK
    assert await edge.store.tokens.delete(token) is Status.GONE
    assert await edge.store.tokens.fetch(token.id) is None
    assert [await edge.store.subscriptions.fetch(sub.id) for sub in subs] == [None] * 3
    assert await _left(edge, token) == []
    assert await edge.registered(given), "the device may register again"


async def _left(edge: NtfEdge, token: Token) -> list[bytes]:
    core = edge.store.core
    keys: list[bytes] = await core.ask(token.partition, b"KEYS", b"*")
    return [key for key in keys if token.id in key]


async def test_commands_on_a_deleted_token(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    await edge.store.tokens.delete(token)
    assert await edge.store.tokens.activate(token, token.code) is Status.GONE
    assert await edge.store.tokens.replace(token, device()) is Status.GONE
    assert await edge.store.tokens.set_cron(token, 30) is Status.GONE
    assert await edge.store.subscriptions.create(token, queue(), KEY.pkcs8) is None
    assert await edge.store.pushes.claim(token) is None


async def test_tcrn(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    assert await edge.store.tokens.set_cron(token, 30) is Status.OK
    assert (await edge.fetched(token)).cron == 30
    assert await edge.store.tokens.set_cron(token, 0) is Status.OK
    assert (await edge.fetched(token)).cron == 0
    core = edge.store.core
    assert await core.ask(token.partition, b"EXISTS", core.keys.cron(token.partition)) == 0
