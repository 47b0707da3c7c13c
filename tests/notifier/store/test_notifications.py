"""NMSG: what a token keeps, and the push that follows."""

import asyncio
import os

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import APNS, NOW, SMP1, SMP2, NtfEdge, device, queue
from weir.notifier.outcome import Delivered, Invalid
from weir.notifier.store.records import MAX_NOTIFICATIONS, PNMessageData, Push, PushKind, Status
from weir.wire.ntf.types import PushProvider


async def pushed(edge: NtfEdge, *given: object, **options: object) -> Push:
    received = await edge.receive(*given, **options)  # type: ignore[arg-type]
    assert received.status is Status.OK and received.push is not None
    return received.push


async def test_a_notification_is_pushed(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue(SMP2)
    sub = await edge.subscription(token, wanted)
    push = await pushed(edge, sub, nonce=b"n" * 24)
    assert (push.token, push.kind) == (token, PushKind.MESSAGES)
    assert push.messages == (PNMessageData(wanted, NOW, b"n" * 24, b"meta"),)
    assert await edge.store.pushes.done(push, Delivered()) is None
    assert await edge.due() == []


async def test_the_hot_path_is_one_round_trip(open_one: OpenEdge) -> None:
    edge, other = await open_one(), await open_one()
    sub = await edge.subscription(await edge.active())
    for store_edge in (edge, other):
        push = await pushed(store_edge, sub)  # the first one fills the caches
        await store_edge.store.pushes.done(push, Delivered())
        before = store_edge.store.round_trips
        push = await pushed(store_edge, sub)
        assert store_edge.store.round_trips == before + 1
        await store_edge.store.pushes.done(push, Delivered())
        assert store_edge.store.round_trips == before + 2


async def test_a_push_carries_the_newest_of_each_subscription(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    subs = [await edge.subscription(token) for _ in range(8)]
    for n, sub in enumerate([*subs, *subs[:2]]):
        push = (await edge.receive(sub, ts=NOW + n, claim=())).push
        assert push is None
    [push] = await edge.due()
    newest = [*range(4, 8), 8, 9]
    assert len(push.messages) == MAX_NOTIFICATIONS
    assert [message.ntf_ts - NOW for message in push.messages] == newest
    assert [message.queue.notifier_id for message in push.messages] == [
        [*subs, *subs[:2]][n].queue.notifier_id for n in newest
    ]


async def test_nothing_is_cleared_by_a_push(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    subs = [await edge.subscription(token) for _ in range(2)]
    await edge.store.pushes.done(await pushed(edge, subs[0]), Delivered())
    push = await pushed(edge, subs[1])
    assert len(push.messages) == 2


async def test_a_deleted_subscription_takes_its_notification_along(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    subs = [await edge.subscription(token) for _ in range(2)]
    await edge.store.pushes.done(await pushed(edge, subs[0]), Delivered())
    await edge.store.subscriptions.delete(subs[0])
    push = await pushed(edge, subs[1])
    assert [message.queue for message in push.messages] == [subs[1].queue]


async def test_behaviour_22_auth_for_unknown_notifiers_and_inactive_tokens(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    token = await edge.active()
    sub = await edge.subscription(token)
    unknown = await edge.store.notifications.received(sub.server_id, b"x" * 24, b"n" * 24, b"meta", NOW, (APNS,))
    assert unknown == (Status.AUTH, None)
    await edge.store.pushes.done(await pushed(edge, sub), Invalid())
    assert await edge.receive(sub) == (Status.AUTH, None)
    await other.store.subscriptions.delete(sub)  # this edge still has it in its cache
    assert await edge.receive(sub) == (Status.AUTH, None)


async def test_a_subscription_that_was_made_again(open_one: OpenEdge) -> None:
    edge, other = await open_one(), await open_one()
    token = await edge.active()
    wanted = queue()
    sub = await edge.subscription(token, wanted)
    await other.store.subscriptions.delete(sub)
    await other.subscription(token, wanted)
    assert (await pushed(edge, sub)).token == token


async def test_what_comes_during_a_push_is_coalesced(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    token = await edge.active()
    subs = [await edge.subscription(token) for _ in range(3)]
    first = await pushed(edge, subs[0])
    for sub in subs[1:]:
        assert await other.receive(sub) == (Status.OK, None), "one push of a token at a time"
    assert await other.due() == []
    second = await edge.store.pushes.done(first, Delivered())
    assert second is not None and len(second.messages) == 3
    assert await edge.store.pushes.done(second, Delivered()) is None
    assert await other.due() == []


async def test_a_provider_without_room(open_any: OpenEdge) -> None:
    edge = await open_any()
    sub = await edge.subscription(await edge.active())
    assert await edge.receive(sub, claim=(PushProvider.APNS_NULL, PushProvider.APNS_DEV)) == (Status.OK, None)
    assert await edge.due(PushProvider.APNS_DEV) == []
    [push] = await edge.due()
    assert push.token.id == sub.token_id


async def test_ids_and_metadata_of_any_length(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active(device(PushProvider.APNS_NULL))
    for length in (1, 24, 255):
        wanted = queue(SMP1, os.urandom(length))
        sub = await edge.subscription(token, wanted)
        nonce, meta = os.urandom(24), os.urandom(length)
        received = await edge.store.notifications.received(
            sub.server_id, wanted.notifier_id, nonce, meta, NOW, (PushProvider.APNS_NULL,)
        )
        assert received.push is not None
        assert received.push.messages[-1] == PNMessageData(wanted, NOW, nonce, meta)
        await edge.store.pushes.done(received.push, Delivered())


async def test_many_at_a_time(open_any: OpenEdge) -> None:
    """Every notification is in a push, and no token has two pushes at a time."""
    edges = [await open_any() for _ in range(2)]
    tokens = [await edges[0].active() for _ in range(5)]
    subs = [await edges[0].subscription(token) for token in tokens for _ in range(3)]
    under_way: set[bytes] = set()
    last: dict[bytes, int] = {}

    async def send(edge: NtfEdge, push: Push | None) -> None:
        while push is not None:
            assert push.token.id not in under_way
            under_way.add(push.token.id)
            await asyncio.sleep(0.001)
            for message in push.messages:
                last[message.queue.notifier_id] = max(last.get(message.queue.notifier_id, 0), message.ntf_ts)
            under_way.discard(push.token.id)
            push = await edge.store.pushes.done(push, Delivered())

    async def notify(n: int) -> None:
        place = n % len(subs)
        edge = edges[place % 2]  # one edge owns the SMP server of a queue
        await send(edge, (await edge.receive(subs[place], ts=NOW + n)).push)

    await asyncio.gather(*(notify(n) for n in range(300)))
    assert last == {sub.queue.notifier_id: NOW + 285 + n for n, sub in enumerate(subs)}
