"""Pushes that are due: verification, retries, periodic ones, and the claims of edges."""

import asyncio
from typing import Any

import pytest

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import APNS, NtfEdge, device
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.store.records import Push, PushKind, Status, Token
from weir.wire.ntf.types import InvalidReason, PushProvider, TokenInvalid, TokenStatus


async def waiting_push(edge: NtfEdge) -> Push:
    """A message push of a new token, claimed."""
    push = (await edge.receive(await edge.subscription(await edge.active()))).push
    assert push is not None
    return push


async def make_ripe(edge: NtfEdge, token: Token, key: bytes | None = None) -> None:
    """As if the time that a token waits for had come."""
    core, p = edge.store.core, token.partition
    await core.ask(p, b"ZADD", key or core.keys.waits(p, token.device.provider), b"XX", 1, token.id)


async def wait_of(edge: NtfEdge, token: Token) -> float | None:
    """Seconds until anybody may claim the token's push."""
    core, p = edge.store.core, token.partition
    score = await core.ask(p, b"ZSCORE", core.keys.waits(p, token.device.provider), token.id)
    seconds, micros = await core.ask(p, b"TIME")
    return None if score is None else float(score) / 1000 - (int(seconds) + int(micros) / 1e6)


async def test_behaviour_23_a_delivered_verification_confirms(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.registered()
    push = await edge.store.pushes.claim(token)
    assert push is not None and push.kind is PushKind.VERIFICATION and push.token == token
    assert await edge.store.pushes.done(push, Delivered()) is None
    assert (await edge.fetched(token)).status is TokenStatus.CONFIRMED


async def test_behaviour_23_an_active_token_stays_active(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.registered()
    push = await edge.store.pushes.claim(token)
    assert push is not None
    await edge.store.tokens.activate(token, token.code)
    await edge.store.pushes.done(push, Delivered())
    assert (await edge.fetched(token)).status is TokenStatus.ACTIVE
    assert await edge.due() == []


@pytest.mark.parametrize("reason", [None, *InvalidReason])
async def test_a_push_that_says_the_token_is_invalid(open_any: OpenEdge, reason: InvalidReason | None) -> None:
    edge = await open_any()
    push = await waiting_push(edge)
    assert await edge.store.pushes.done(push, Invalid(reason)) is None
    assert (await edge.fetched(push.token)).status == TokenInvalid(reason)
    assert await edge.due() == [] and await wait_of(edge, push.token) is None


async def test_what_waited_is_pushed_when_the_token_is_active_again(open_any: OpenEdge) -> None:
    edge = await open_any()
    push = await waiting_push(edge)
    await edge.store.pushes.done(push, Invalid())
    await edge.store.tokens.replace(await edge.fetched(push.token), device())
    [verification] = await edge.due()
    assert verification.kind is PushKind.VERIFICATION
    await edge.store.pushes.done(verification, Delivered())
    assert await edge.due() == [], "messages need an ACTIVE token"
    current = await edge.fetched(push.token)
    assert await edge.store.tokens.activate(current, current.code) is Status.OK
    [again] = await edge.due()
    assert again.messages == push.messages


async def test_a_failed_push_is_not_repeated(open_any: OpenEdge) -> None:
    edge = await open_any()
    push = await waiting_push(edge)
    assert await edge.store.pushes.done(push, Failed()) is None
    assert await edge.due() == []
    assert (await edge.fetched(push.token)).status is TokenStatus.ACTIVE


async def test_a_retry_waits_as_long_as_the_provider_says(open_any: OpenEdge) -> None:
    edge = await open_any()
    push = await waiting_push(edge)
    assert await edge.store.pushes.done(push, RetryLater(40.0)) is None
    left = await wait_of(edge, push.token)
    assert left is not None and 35 < left <= 40
    assert await edge.due() == []
    await make_ripe(edge, push.token)
    [again] = await edge.due()
    assert again.messages == push.messages and again.claim != push.claim


async def test_notifications_do_not_shorten_a_retry(open_any: OpenEdge) -> None:
    edge = await open_any()
    sub = await edge.subscription(await edge.active())
    push = (await edge.receive(sub)).push
    assert push is not None
    await edge.store.pushes.done(push, RetryLater(40.0))
    assert await edge.receive(sub) == (Status.OK, None)
    assert await edge.due() == []
    await make_ripe(edge, push.token)
    [again] = await edge.due()
    assert again.seq > push.seq


async def test_delays_grow_until_the_push_counts_as_failed(open_one: OpenEdge) -> None:
    edge = await open_one()
    push = await waiting_push(edge)
    delays = []
    for _ in range(100):
        assert await edge.store.pushes.done(push, RetryLater()) is None
        delays.append(await wait_of(edge, push.token) or 0.0)
        await make_ripe(edge, push.token)
        [push] = await edge.due()
    assert [round(delay) for delay in delays[:3]] == [5, 10, 20] and round(max(delays)) == 900
    assert 20 * 3600 < sum(delays) < 30 * 3600
    assert await edge.store.pushes.done(push, RetryLater()) is None
    assert await edge.due() == [] and await wait_of(edge, push.token) is None


async def test_a_push_given_back_counts_no_try(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    push = await waiting_push(edge)
    for _ in range(150):
        await edge.store.pushes.give_back(push)
        [push] = await other.store.pushes.due(push.token.partition, {APNS: 10})
    await edge.store.pushes.give_back(push, 60.0)
    assert 55 < (await wait_of(edge, push.token) or 0) <= 60


async def test_a_claim_of_a_killed_edge_expires(open_any: OpenEdge) -> None:
    edge, other = await open_any(claim=0.3), await open_any()
    push = await waiting_push(edge)
    assert await other.due() == []
    async with asyncio.timeout(10):
        while not (found := await other.due()):
            await asyncio.sleep(0.05)
    assert [each.messages for each in found] == [push.messages]
    assert await edge.store.pushes.done(push, RetryLater(0.0)) is None, "the claim is the other's"
    assert await edge.due() == []
    assert await other.store.pushes.done(found[0], Delivered()) is None
    assert await wait_of(other, push.token) is None


async def test_a_late_delivery_is_not_repeated(open_any: OpenEdge) -> None:
    """The push was slower than its claim. The other edge's push was the one duplicate, and there is no third."""
    edge, other = await open_any(), await open_any()
    push = await waiting_push(edge)
    await make_ripe(edge, push.token)
    [second] = await other.due()
    assert await edge.store.pushes.done(push, Delivered()) is None
    assert await other.store.pushes.done(second, RetryLater(0.0)) is None
    assert await other.due() == []


@pytest.mark.parametrize("outcome", [Delivered(), Failed(), RetryLater(1.0), Invalid()])
async def test_outcomes_for_a_token_that_is_gone(open_one: OpenEdge, outcome: Outcome) -> None:
    edge = await open_one()
    push = await waiting_push(edge)
    await edge.store.tokens.delete(push.token)
    assert await edge.store.pushes.done(push, outcome) is None
    assert await edge.due() == []
    core = edge.store.core
    assert await core.ask(push.token.partition, b"EXISTS", core.keys.token(push.token.partition, push.token.id)) == 0


async def test_a_verification_goes_before_messages(open_one: OpenEdge) -> None:
    edge = await open_one()
    push = await waiting_push(edge)
    await edge.store.pushes.give_back(push)
    core, p = edge.store.core, push.token.partition
    await core.call(
        p, "reverify", [core.keys.token(p, push.token.id)], [core.sealer.device(push.token.device), b"operation"]
    )
    [first] = await edge.due()
    assert first.kind is PushKind.VERIFICATION
    second = await edge.store.pushes.done(first, Delivered())
    assert second is not None and second.messages == push.messages


async def test_flaw_1_a_cron_starts_for_a_new_token(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    assert await edge.store.tokens.set_cron(token, 20) is Status.OK
    core, p = edge.store.core, token.partition
    assert await edge.due() == []
    seconds, _ = await core.ask(p, b"TIME")
    first = float(await core.ask(p, b"ZSCORE", core.keys.cron(p), token.id)) / 1000 - int(seconds)
    assert 19 * 60 < first <= 20 * 60 + 1
    for _ in range(2):
        await make_ripe(edge, token, core.keys.cron(p))
        [push] = await edge.due()
        assert push.kind is PushKind.CHECK and push.messages == () and push.token.id == token.id
        assert await edge.store.pushes.done(push, Delivered()) is None
        assert await edge.due() == []


async def test_periodic_pushes_need_an_active_token(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    core, p = edge.store.core, token.partition
    await edge.store.tokens.set_cron(token, 20)
    await edge.store.tokens.replace(token, device())
    [verification] = await edge.due()
    await edge.store.pushes.done(verification, Delivered())
    await make_ripe(edge, token, core.keys.cron(p))
    assert await edge.due() == []
    assert float(await core.ask(p, b"ZSCORE", core.keys.cron(p), token.id)) > 1, "it comes again"


async def test_no_more_periodic_pushes(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    core, p = edge.store.core, token.partition
    await edge.store.tokens.set_cron(token, 20)
    await make_ripe(edge, token, core.keys.cron(p))
    [push] = await edge.due()
    await edge.store.pushes.give_back(push)
    await edge.store.tokens.set_cron(token, 0)
    assert await edge.due() == []


async def test_due_takes_as_many_as_there_is_room_for(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    tokens = [await edge.registered() for _ in range(20)]
    tokens += [await edge.registered(device(PushProvider.APNS_NULL)) for _ in range(5)]
    p = tokens[0].partition
    same = [token for token in tokens if token.partition == p and token.device.provider is APNS]
    assert len(await edge.store.pushes.due(p, {APNS: 1})) == 1
    assert len(await other.store.pushes.due(p, {APNS: 100, PushProvider.APNS_NULL: 0})) == len(same) - 1
    assert len(await other.due(PushProvider.APNS_NULL)) == 5
    assert (await edge.store.pushes.waiting())[APNS] == 20


async def test_two_edges_do_not_claim_the_same_push(open_any: OpenEdge) -> None:
    edges = [await open_any() for _ in range(3)]
    tokens = [await edges[0].registered() for _ in range(30)]
    claimed: list[Any] = await asyncio.gather(*(edge.due() for edge in edges), edges[0].store.pushes.claim(tokens[0]))
    ids = [push.token.id for pushes in claimed[:3] for push in pushes]
    ids += [claimed[3].token.id] if claimed[3] else []
    assert sorted(ids) == sorted(token.id for token in tokens)
