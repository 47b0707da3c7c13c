"""SMP servers: addresses, owners, services, and the statuses of their subscriptions."""

import asyncio
from hashlib import md5

import pytest

from tests.notifier.store.conftest import OpenEdge
from tests.notifier.store.harness import SMP1, SMP2, NtfEdge, queue
from weir.notifier.store.records import (
    Fenced,
    OwnershipLostEvent,
    ServerMovedEvent,
    ServiceKeys,
    SubscribeEvent,
    Subscription,
    Totals,
)
from weir.wire.address import ServerHost
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp import ids_hash

SERVICE = b"s" * 24
MOVED = ServerHost((b"new.example.org",), b"5223", SMP1.key_hash)
KEYS = ServiceKeys(b"-----BEGIN CERTIFICATE-----", b"-----BEGIN PRIVATE KEY-----")
NOTHING = Totals(0, ids_hash.EMPTY, 0)


async def subscriptions(edge: NtfEdge, count: int) -> tuple[bytes, list[Subscription]]:
    token = await edge.active()
    subs = list(await asyncio.gather(*(edge.subscription(token) for _ in range(count))))
    return subs[0].server_id, subs


def hash_of(subs: list[Subscription]) -> bytes:
    total = ids_hash.EMPTY
    for sub in subs:
        total = ids_hash.add(total, md5(sub.queue.notifier_id, usedforsecurity=False).digest())
    return total


# Addresses


async def test_a_server_is_its_identity(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    first = await edge.store.servers.ensure(SMP1)
    assert await other.store.servers.ensure(SMP1) == first != await edge.store.servers.ensure(SMP2)
    assert {server.address for server in await edge.store.servers.all()} == {SMP1, SMP2}
    before = edge.store.round_trips
    assert await edge.store.servers.ensure(SMP1) == first
    assert edge.store.round_trips == before


async def test_a_new_address_is_a_candidate(open_any: OpenEdge) -> None:
    edge, owner = await open_any(), await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await owner.owned(server_id)
    assert await edge.store.servers.ensure(MOVED) == server_id
    await owner.until(lambda: bool(owner.events))
    assert owner.events == [ServerMovedEvent(server_id, epoch)]
    server = await owner.store.servers.fetch(server_id)
    assert server is not None and (server.address, server.candidate) == (SMP1, MOVED)
    await owner.store.servers.verified(server_id, epoch, MOVED)
    server = await owner.store.servers.fetch(server_id)
    assert server is not None and (server.address, server.candidate) == (MOVED, None)


async def test_a_rejected_candidate_may_come_again(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    for _ in range(2):
        await edge.store.servers.ensure(MOVED)
        server = await edge.store.servers.fetch(server_id)
        assert server is not None and server.candidate == MOVED
        await edge.store.servers.rejected(server_id, epoch, MOVED)
        server = await edge.store.servers.fetch(server_id)
        assert server is not None and (server.address, server.candidate) == (SMP1, None)


async def test_one_more_host_is_no_move(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id = await edge.store.servers.ensure(SMP2)
    await edge.store.servers.ensure(SMP2._replace(hosts=(*SMP2.hosts[1:], b"onion.example")))
    server = await edge.store.servers.fetch(server_id)
    assert server is not None and (server.address, server.candidate) == (SMP2, None)


async def test_the_state_that_the_page_shows(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id = await edge.store.servers.ensure(SMP1)
    await edge.store.servers.set_state(server_id, {"since": "2026-11-19T03:00:00Z"})
    server = await edge.store.servers.fetch(server_id)
    assert server is not None and server.state == {"since": "2026-11-19T03:00:00Z"}


# Ownership


async def test_one_edge_owns_a_server(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    assert await other.store.servers.own(server_id) is None
    assert await edge.store.servers.is_owner(server_id, epoch)
    assert await other.store.servers.owners() == {server_id: edge.store.edge.decode()}
    await edge.store.servers.release(server_id, epoch)
    assert await other.store.servers.owners() == {}
    assert await other.owned(server_id) > epoch
    assert not await edge.store.servers.is_owner(server_id, epoch)


async def test_the_server_of_a_dead_edge_is_free(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    await edge.store.leases.stop()
    assert await other.owned(server_id) == epoch + 1


async def test_raced_owners(open_any: OpenEdge) -> None:
    edges = [await open_any() for _ in range(3)]
    server_id = await edges[0].store.servers.ensure(SMP1)
    epochs = await asyncio.gather(*(edge.store.servers.own(server_id) for edge in edges))
    assert len([epoch for epoch in epochs if epoch is not None]) == 1


async def test_epochs_fence(open_any: OpenEdge) -> None:
    """The previous owner's leases lapsed for a moment: what it says afterwards counts for nothing."""
    edge, other = await open_any(), await open_any()
    server_id, subs = await subscriptions(edge, 3)
    old = await edge.owned(server_id)
    await edge.store.servers.subscribed(server_id, old, subs[1:], SERVICE)
    await edge.store.core.ask(
        home := edge.store.partition(server_id), b"DEL", edge.store.core.keys.lease(home, edge.store.edge)
    )
    new = await other.owned(server_id)
    await edge.until(lambda: any(isinstance(event, OwnershipLostEvent) for event in edge.events))
    servers = edge.store.servers
    for call in (
        servers.session_up(server_id, old),
        servers.disconnected(server_id, old),
        servers.subscribed(server_id, old, subs, None),
        servers.errors(server_id, old, [(subs[0], SubStatus.AUTH)]),
        servers.ended(server_id, old, subs[0].queue.notifier_id),
        servers.remove_service(server_id, old),
        servers.set_service(server_id, old, b"other" * 4),
        servers.to_subscribe(server_id, old, [subs[0].id]),
        servers.verified(server_id, old, MOVED),
        edge.pending(server_id, old),
    ):
        with pytest.raises(Fenced):
            await call
    assert await other.store.servers.totals(server_id) == Totals(2, hash_of(subs[1:]), 1)
    await other.store.servers.session_up(server_id, new)
    assert {await edge.status(sub) for sub in subs[1:]} == {SubStatus.ACTIVE}


async def test_an_epoch_grows_after_redis_has_lost_writes(open_any: OpenEdge) -> None:
    """A partition has a higher epoch than the home partition, which lost its writes in a fail-over."""
    edge = await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = 0
    for _ in range(5):
        epoch = await edge.owned(server_id)
    core, home = edge.store.core, edge.store.partition(server_id)
    await core.ask(home, b"DEL", core.keys.share(home, server_id))
    assert await edge.owned(server_id) > epoch


# Services


async def test_credentials_are_made_once(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    assert await edge.store.servers.credentials(server_id) is None
    assert await edge.store.servers.set_credentials(server_id, KEYS) == KEYS
    assert await other.store.servers.set_credentials(server_id, ServiceKeys(b"c", b"k")) == KEYS
    assert await other.store.servers.credentials(server_id) == KEYS


async def test_flaw_3_the_service_id_is_stored(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    assert not await edge.store.servers.set_service(server_id, epoch, SERVICE)
    server = await edge.store.servers.fetch(server_id)
    assert server is not None and server.service_id == SERVICE


async def test_flaw_4_a_disconnect_keeps_the_service(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 3)
    epoch = await edge.owned(server_id)
    await edge.store.servers.set_credentials(server_id, KEYS)
    await edge.store.servers.set_service(server_id, epoch, SERVICE)
    await edge.store.servers.subscribed(server_id, epoch, subs[:2], SERVICE)
    await edge.store.servers.subscribed(server_id, epoch, subs[2:], None)
    await edge.store.servers.disconnected(server_id, epoch)
    server = await edge.store.servers.fetch(server_id)
    assert server is not None and server.service_id == SERVICE
    assert await edge.store.servers.credentials(server_id) == KEYS
    assert await edge.store.servers.totals(server_id) == Totals(2, hash_of(subs[:2]), 1)


async def test_another_service_id_voids_the_associations(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 3)
    epoch = await edge.owned(server_id)
    await edge.store.servers.set_service(server_id, epoch, SERVICE)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    assert not await edge.store.servers.set_service(server_id, epoch, SERVICE)
    assert (await edge.store.servers.totals(server_id)).count == 3
    assert await edge.store.servers.set_service(server_id, epoch, b"another".ljust(24))
    assert await edge.store.servers.totals(server_id) == Totals(0, ids_hash.EMPTY, 3)


async def test_behaviour_7_and_flaw_5_a_removed_service_leaves_ended_subscriptions_alone(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 40)
    epoch = await edge.owned(server_id)
    servers = edge.store.servers
    await servers.set_credentials(server_id, KEYS)
    await servers.set_service(server_id, epoch, SERVICE)
    await servers.subscribed(server_id, epoch, subs, SERVICE)
    await servers.session_up(server_id, epoch)
    await servers.ended(server_id, epoch, subs[0].queue.notifier_id)
    await servers.deleted(server_id, subs[1].queue.notifier_id)
    await servers.errors(server_id, epoch, [(subs[2], SubStatus.AUTH), (subs[3], SubStatus.SERVICE)])
    assert await servers.totals(server_id) == Totals(36, hash_of(subs[4:]), 1)
    assert await servers.remove_service(server_id, epoch) == 36
    assert await servers.totals(server_id) == Totals(0, ids_hash.EMPTY, 37)
    assert [await edge.status(sub) for sub in subs[:4]] == [
        SubStatus.END,
        SubStatus.DELETED,
        SubStatus.AUTH,
        SubStatus.SERVICE,
    ]
    assert {await edge.status(sub) for sub in subs[4:]} == {SubStatus.INACTIVE}
    server = await servers.fetch(server_id)
    assert server is not None and server.service_id is None
    assert await servers.credentials(server_id) is None
    assert {sub.id for sub in await edge.pending(server_id, epoch)} == {sub.id for sub in subs[3:]}


# Subscriptions


async def test_flaw_2_a_subscription_becomes_pending(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    sub = await edge.subscription(await edge.active())
    assert await edge.status(sub) is SubStatus.NEW
    await edge.until(lambda: bool(edge.events))
    assert edge.events == [SubscribeEvent(server_id, epoch, sub.id)]
    [picked] = await edge.store.servers.to_subscribe(server_id, epoch, [sub.id])
    assert (picked.queue, picked.ntf_key, picked.status) == (sub.queue, sub.ntf_key, SubStatus.PENDING)
    assert await edge.status(sub) is SubStatus.PENDING
    await edge.store.servers.subscribed(server_id, epoch, [picked], None)
    assert await edge.status(sub) is SubStatus.ACTIVE
    assert await edge.store.servers.to_subscribe(server_id, epoch, [sub.id]) == []


async def test_pages(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 30)
    epoch = await edge.owned(server_id)
    pages = [page async for page in edge.store.servers.pending(server_id, epoch, page=7)]
    assert [len(page) for page in pages] == [7, 7, 7, 7, 2]
    assert {sub.id for page in pages for sub in page} == {sub.id for sub in subs}
    await edge.store.servers.subscribed(server_id, epoch, pages[0], None)
    assert len(await edge.pending(server_id, epoch)) == 23, "a second walk leaves out those subscribed"
    assert (await edge.store.servers.totals(server_id)).pending == 30


async def test_a_disconnect_makes_all_inactive_at_once(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 6)
    epoch = await edge.owned(server_id)
    servers = edge.store.servers
    await servers.subscribed(server_id, epoch, subs[:3], SERVICE)
    await servers.subscribed(server_id, epoch, subs[3:], None)
    assert {await edge.status(sub) for sub in subs[:3]} == {SubStatus.INACTIVE}, "until NSUBS is answered"
    await servers.session_up(server_id, epoch)
    assert {await edge.status(sub) for sub in subs} == {SubStatus.ACTIVE}
    before = edge.store.round_trips
    await servers.disconnected(server_id, epoch)
    assert edge.store.round_trips == before + 64
    assert {await edge.status(sub) for sub in subs} == {SubStatus.INACTIVE}
    await servers.session_up(server_id, epoch)
    assert {await edge.status(sub) for sub in subs[:3]} == {SubStatus.ACTIVE}
    assert {await edge.status(sub) for sub in subs[3:]} == {SubStatus.INACTIVE}
    assert len(await edge.pending(server_id, epoch)) == 3


async def test_another_owner_starts_from_inactive(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    server_id, subs = await subscriptions(edge, 4)
    epoch = await edge.owned(server_id)
    await edge.store.servers.subscribed(server_id, epoch, subs[:2], SERVICE)
    await edge.store.servers.subscribed(server_id, epoch, subs[2:], None)
    await edge.store.servers.session_up(server_id, epoch)
    await edge.store.servers.release(server_id, epoch)
    assert {await edge.status(sub) for sub in subs} == {SubStatus.INACTIVE}
    epoch = await other.owned(server_id)
    assert {await edge.status(sub) for sub in subs} == {SubStatus.INACTIVE}
    assert {sub.id for sub in await other.pending(server_id, epoch)} == {sub.id for sub in subs[2:]}


async def test_errors(open_any: OpenEdge) -> None:
    """ERR and SERVICE are tried again in every walk, and keep their status until they are subscribed."""
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 3)
    epoch = await edge.owned(server_id)
    error = SubError(b"SMP error QUOTA")
    servers = edge.store.servers
    await servers.errors(server_id, epoch, [(subs[0], error), (subs[1], SubStatus.SERVICE), (subs[2], SubStatus.AUTH)])
    assert [await edge.status(sub) for sub in subs] == [error, SubStatus.SERVICE, SubStatus.AUTH]
    again = await edge.pending(server_id, epoch)
    assert {sub.id for sub in again} == {subs[0].id, subs[1].id}
    assert [await edge.status(sub) for sub in subs] == [error, SubStatus.SERVICE, SubStatus.AUTH]
    await servers.subscribed(server_id, epoch, again, None)
    assert [await edge.status(sub) for sub in subs] == [SubStatus.ACTIVE, SubStatus.ACTIVE, SubStatus.AUTH]


async def test_an_error_ends_an_association(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id, subs = await subscriptions(edge, 2)
    epoch = await edge.owned(server_id)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    await edge.store.servers.errors(server_id, epoch, [(subs[0], SubError(b"x" * 500))])
    assert await edge.store.servers.totals(server_id) == Totals(1, hash_of(subs[1:]), 1)


async def test_behaviour_15_deld_counts_in_every_session(open_any: OpenEdge) -> None:
    edge, other = await open_any(), await open_any()
    server_id, subs = await subscriptions(edge, 1)
    await edge.owned(server_id)
    assert await other.store.servers.deleted(server_id, subs[0].queue.notifier_id)
    assert await edge.status(subs[0]) is SubStatus.DELETED
    assert (await edge.store.servers.totals(server_id)) == NOTHING


async def test_end_and_deld_of_unknown_notifiers(open_one: OpenEdge) -> None:
    edge = await open_one()
    server_id = await edge.store.servers.ensure(SMP1)
    epoch = await edge.owned(server_id)
    assert not await edge.store.servers.ended(server_id, epoch, b"n" * 24)
    assert not await edge.store.servers.deleted(server_id, b"n" * 24)


async def test_end_after_the_subscription_was_made_again(open_one: OpenEdge) -> None:
    """Another edge has deleted and made the subscription: what this edge has cached is outdated."""
    edge, other = await open_one(), await open_one()
    token = await edge.active()
    wanted = queue()
    old = await edge.subscription(token, wanted)
    epoch = await edge.owned(old.server_id)
    await other.store.subscriptions.delete(old)
    new = await other.subscription(token, wanted)
    assert await edge.store.servers.ended(old.server_id, epoch, wanted.notifier_id)
    assert await edge.status(new) is SubStatus.END


async def test_deleted_subscriptions_leave_the_count(open_any: OpenEdge) -> None:
    edge = await open_any()
    server_id, subs = await subscriptions(edge, 5)
    epoch = await edge.owned(server_id)
    await edge.store.servers.subscribed(server_id, epoch, subs, SERVICE)
    await edge.store.subscriptions.delete(subs[0])
    assert await edge.store.servers.totals(server_id) == Totals(4, hash_of(subs[1:]), 0)
    token = await edge.store.tokens.fetch(subs[0].token_id)
    assert token is not None
    await edge.store.tokens.delete(token)
    assert await edge.store.servers.totals(server_id) == NOTHING
