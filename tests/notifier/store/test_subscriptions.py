"""SNEW, SCHK, SDEL."""

import asyncio

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import KEY, SMP1, SMP2, queue
from weir.crypto.keys import generate
from weir.notifier.outcome import Invalid
from weir.notifier.store.records import Status, SubscribeEvent
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SubStatus


async def test_a_new_subscription(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue()
    created = await edge.store.subscriptions.create(token, wanted, KEY.pkcs8)
    assert created is not None and created.created and not created.owned
    sub = created.subscription
    assert (sub.token_id, sub.queue, sub.ntf_key, sub.status) == (token.id, wanted, KEY.pkcs8, SubStatus.NEW)
    assert edge.store.partition(sub.id) == token.partition
    assert await edge.store.subscriptions.fetch(sub.id) == (sub, token)
    assert (await edge.store.servers.totals(sub.server_id)).pending == 1
    assert (await edge.store.stats.counts())["subscriptions"] == 1


async def test_every_kind_of_notifier_key(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    for key in (generate("ed25519"), generate("ed448"), generate("x25519")):
        sub = await edge.subscription(token, ntf_key=key.pkcs8)
        found = await edge.store.subscriptions.fetch(sub.id)
        assert found is not None and found[0].ntf_key == key.pkcs8


async def test_behaviour_3_a_repeated_snew_finds_the_subscription(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    token = await edge.active()
    wanted = queue()
    sub = await edge.subscription(token, wanted)
    again = await other.store.subscriptions.create(token, wanted, KEY.pkcs8)
    assert again is not None and again.subscription == sub and not again.created
    assert (await edge.store.stats.counts())["subscriptions"] == 1


async def test_behaviour_3_another_notifier_key_is_refused(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue()
    sub = await edge.subscription(token, wanted)
    assert await edge.store.subscriptions.create(token, wanted, generate("ed25519").pkcs8) is None
    assert await edge.store.subscriptions.fetch(sub.id) == (sub, token)


async def test_one_notifier_belongs_to_one_token(open_any: OpenEdge) -> None:
    edge = await open_any()
    first, second = await edge.active(), await edge.active()
    wanted = queue()
    await edge.subscription(first, wanted)
    assert await edge.store.subscriptions.create(second, wanted, KEY.pkcs8) is None
    assert await edge.subscription(second, queue(SMP2, wanted.notifier_id)), "the same id on another server"


async def test_raced_snews_of_tokens_make_one_subscription(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    tokens = [await edge.active() for _ in range(4)]
    for _ in range(5):
        wanted = queue()
        created = await asyncio.gather(
            *(one.store.subscriptions.create(token, wanted, KEY.pkcs8) for token in tokens for one in (edge, other))
        )
        owners = {each.subscription.token_id for each in created if each is not None}
        assert len(owners) == 1
        assert len({each.subscription.id for each in created if each is not None}) == 1
    assert (await edge.store.stats.counts())["subscriptions"] == 5


async def test_a_token_that_may_not_subscribe(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.registered()
    wanted = queue()
    assert await edge.store.subscriptions.create(token, wanted, KEY.pkcs8) is None
    assert await edge.subscription(await edge.active(), wanted), "the notifier is free"


async def test_an_invalid_token_may_subscribe(open_one: OpenEdge) -> None:
    edge = await open_one()
    token = await edge.active()
    push = (await edge.receive(await edge.subscription(token))).push
    assert push is not None
    await edge.store.pushes.done(push, Invalid())
    invalid = await edge.fetched(token)
    assert invalid.may_subscribe
    assert await edge.subscription(invalid)


async def test_sdel(open_any: OpenEdge) -> None:
    edge = await open_any()
    token, other = await edge.active(), await edge.active()
    wanted = queue()
    sub = await edge.subscription(token, wanted)
    assert await edge.store.subscriptions.delete(sub) is Status.OK
    assert await edge.store.subscriptions.delete(sub) is Status.GONE
    assert await edge.store.subscriptions.fetch(sub.id) is None
    totals = await edge.store.servers.totals(sub.server_id)
    assert (totals.count, totals.pending) == (0, 0)
    assert await edge.subscription(other, wanted), "the notifier is free"


async def test_an_index_without_its_subscription_is_replaced(open_any: OpenEdge) -> None:
    """As after a crash between the deletion of a subscription and that of its index."""
    edge = await open_any()
    token, other = await edge.active(), await edge.active()
    wanted = queue()
    sub = await edge.subscription(token, wanted)
    core = edge.store.core
    await core.call(token.partition, "unsubscribe", [core.keys.subscription(token.partition, sub.id)], [])
    created = await edge.store.subscriptions.create(other, wanted, KEY.pkcs8)
    assert created is not None and created.subscription.token_id == other.id


async def test_a_reservation_of_a_crashed_edge_expires(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue()
    server_id = await edge.store.servers.ensure(wanted.server)
    core = edge.store.core
    at = core.partition(server_id + wanted.notifier_id)
    elsewhere = core.placement.draw((token.partition + 1) % 64)
    index = core.keys.notifier(at, server_id, wanted.notifier_id)
    await core.call(at, "claim_notifier", [index], [elsewhere, b"", 300])
    created = await edge.store.subscriptions.create(token, wanted, KEY.pkcs8)
    assert created is not None and created.created


async def test_a_reservation_in_the_same_partition_is_taken_up(open_any: OpenEdge) -> None:
    edge = await open_any()
    token = await edge.active()
    wanted = queue()
    server_id = await edge.store.servers.ensure(wanted.server)
    core = edge.store.core
    at = core.partition(server_id + wanted.notifier_id)
    reserved = core.placement.draw(token.partition)
    index = core.keys.notifier(at, server_id, wanted.notifier_id)
    await core.call(at, "claim_notifier", [index], [reserved, b"", 60_000])
    sub = await edge.subscription(token, wanted)
    assert sub.id == reserved
    assert await core.ask(at, b"PTTL", index) == -1


async def test_a_reservation_never_ends_a_kept_index(open_any: OpenEdge) -> None:
    """A repeated SNEW takes up the reservation of the first one, which finishes meanwhile."""
    edge = await open_any()
    sub = await edge.subscription(await edge.active())
    core = edge.store.core
    at = core.partition(sub.server_id + sub.queue.notifier_id)
    index = core.keys.notifier(at, sub.server_id, sub.queue.notifier_id)
    assert await core.call(at, "claim_notifier", [index], [sub.id, b"", 1000]) == 0
    assert await core.ask(at, b"PTTL", index) == -1


async def test_the_owner_hears_of_a_new_subscription(open_any: OpenEdge) -> None:
    edge, owner = await open_any(), await open_any()
    token = await edge.active()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await owner.owned(server_id)
    created = await edge.store.subscriptions.create(token, queue(), KEY.pkcs8)
    assert created is not None and created.owned
    await owner.until(lambda: bool(owner.events))
    assert owner.events == [SubscribeEvent(server_id, epoch, created.subscription.id)]
    assert await edge.settled() == []


async def test_a_device_gets_the_address_that_it_gave(open_any: OpenEdge) -> None:
    """The device finds its queue by the SMP server's address, and the newest SNEW counts."""
    edge, other = await open_any(), await open_any()
    token = await edge.active()
    moved = ServerHost((b"new.example.org",), b"", SMP1.key_hash)
    sub = await edge.subscription(token, queue(SMP1, b"n" * 24))
    again = await edge.subscription(token, queue(moved, b"n" * 24))
    assert again.id == sub.id and again.server_id == sub.server_id
    push = (await other.receive(sub)).push
    assert push is not None
    assert [message.queue for message in push.messages] == [queue(moved, b"n" * 24)]


async def test_one_round_trip_to_fetch(open_one: OpenEdge) -> None:
    edge = await open_one()
    sub = await edge.subscription(await edge.active())
    before = edge.store.round_trips
    await edge.store.subscriptions.fetch(sub.id)
    assert edge.store.round_trips == before + 1
