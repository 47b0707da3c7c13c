"""Several replicas: who owns which SMP server, and what happens to notifications while that changes."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.notifier.subscriber.replicas import LIMITS, Notifier, Replica, Replicas, notifiers, reconnect, send, until
from tests.router.fleet import Fleet, Peer
from tests.support.ports import free_port
from weir.crypto.identity import init_identity
from weir.crypto.keys import generate
from weir.notifier.store.records import Fenced, OwnershipLostEvent
from weir.router.config import RouterConfig
from weir.router.edge import Edge
from weir.transport.server import bind
from weir.wire.address import SmpAddress
from weir.wire.ntf.types import SubStatus
from weir.wire.smp.replies import END
from weir.wire.smp.transmission import ServerTransmission


def addresses(count: int) -> list[str]:
    """SMP servers that nobody runs."""
    return [str(SmpAddress(os.urandom(32), ("127.0.0.1",), free_port())) for _ in range(count)]


async def know(replicas: Replicas, count: int) -> None:
    """Make that many SMP servers known, as SNEW does."""
    for address in addresses(count):
        server = SmpAddress.parse(address)
        assert server is not None
        await replicas.all[0].store.servers.ensure(server.server_host)


def loads(replicas: Replicas) -> list[int]:
    return sorted(len(replica.sessions) for replica in replicas.all)


def assert_exclusive(replicas: Replicas) -> None:
    owned = [server for replica in replicas.all for server in replica.owned]
    assert len(owned) == len(set(owned))


@pytest.mark.all("fifty servers: seconds of work, and a minute on a busy machine")
async def test_fifty_servers_stay_balanced_while_replicas_come_and_go(replicas: Replicas) -> None:
    first = await replicas.add()
    await know(replicas, 50)
    first.subscriber.announce()
    await until(lambda: loads(replicas) == [50])
    second = await replicas.add()
    await until(lambda: loads(replicas) == [25, 25])
    await replicas.add()
    await until(lambda: sum(loads(replicas)) == 50 and loads(replicas)[-1] == 17)
    assert_exclusive(replicas)
    await replicas.stop(second)
    await until(lambda: loads(replicas) == [25, 25])
    await replicas.kill(first)
    await until(lambda: loads(replicas) == [50])
    assert_exclusive(replicas)


async def owner_of(replicas: Replicas) -> Replica:
    """The replica that has the only session."""
    await until(lambda: sum(len(replica.sessions) for replica in replicas.all) == 1)
    return next(replica for replica in replicas.all if replica.sessions)


@pytest.fixture
async def pair(replicas: Replicas) -> AsyncIterator[Replicas]:
    await replicas.add()
    await replicas.add()
    yield replicas


@pytest.mark.parametrize("service", [True, False])
async def test_a_killed_replica_is_replaced_within_5_s_and_nothing_is_lost(
    fleet: Fleet, replicas: Replicas, sender: Peer, service: bool
) -> None:
    for _ in range(2):
        await replicas.add(use_service_credentials=service)
    made = await notifiers(fleet, 10)
    await replicas.subscribe_all(made, fleet.address())
    first = await owner_of(replicas)
    await replicas.kill(first)
    for one in made:
        await send(sender, one)
    second = replicas.all[0]
    await until(lambda: second.sessions and second.sessions[0].state.subscribed, limit=5.0)
    await until(lambda: replicas.received() == {one.id for one in made})
    await replicas.until_status(made)


@pytest.mark.parametrize("service", [True, False])
async def test_a_replica_that_drains_is_replaced_at_once_and_nothing_is_lost(
    fleet: Fleet, replicas: Replicas, sender: Peer, service: bool
) -> None:
    for _ in range(2):
        await replicas.add(use_service_credentials=service)
    made = await notifiers(fleet, 40)
    await replicas.subscribe_all(made, fleet.address())
    first = await owner_of(replicas)
    second = next(replica for replica in replicas.all if replica is not first)
    pushed = first.pushes.delivered

    async def send_all() -> None:
        for one in made:
            await send(sender, one)
            await asyncio.sleep(0.01)

    sending = asyncio.create_task(send_all())
    await until(lambda: len(pushed) > 3)
    stopping = asyncio.create_task(replicas.stop(first))
    await until(lambda: second.sessions and second.sessions[0].state.subscribed, limit=1.5)
    await asyncio.gather(sending, stopping)
    expected = {one.id for one in made}
    await until(lambda: replicas.received() | {one.queue.notifier_id for one in pushed} == expected)
    await replicas.until_status(made)
    assert second.sessions[0].state.count == 40


async def test_a_new_server_is_owned_at_once(fleet: Fleet, pair: Replicas) -> None:
    """The replica that handles SNEW need not be the owner."""
    made = await notifiers(fleet, 1)
    await pair.subscribe(made[0], fleet.address())
    await pair.until_status(made, limit=1.5)


async def test_snew_at_any_replica_reaches_the_owner(fleet: Fleet, pair: Replicas) -> None:
    made = await notifiers(fleet, 30)
    await pair.subscribe_all(made[:1], fleet.address())
    await asyncio.gather(*(pair.subscribe(one, fleet.address(), n % 2) for n, one in enumerate(made[1:])))
    await pair.until_status(made)
    owner = await owner_of(pair)
    assert owner.sessions[0].state.count == 30


async def test_a_fenced_owner_counts_for_nothing_but_its_notifications_do(
    fleet: Fleet, pair: Replicas, sender: Peer
) -> None:
    """A replica that hung: another one owns the server when it wakes up."""
    made = await notifiers(fleet, 3)
    await pair.subscribe_all(made, fleet.address())
    first = await owner_of(pair)
    second = next(replica for replica in pair.all if replica is not first)
    session = first.sessions[0]
    client, epoch, server_id = session.client, session.owned.epoch, session.owned.server_id
    assert client is not None
    await first.subscriber._background.close()  # it looks at nothing any more
    first.store.on_event = lambda _: None
    await first.store.leases.stop()
    await until(lambda: second.sessions and second.sessions[0].state.subscribed)
    assert second.sessions[0].owned.epoch > epoch
    with pytest.raises(Fenced):
        await first.store.servers.ended(server_id, epoch, made[0].id)
    session._on_event(client, ServerTransmission(b"", made[0].id, END()))
    await until(lambda: not first.sessions)
    assert (await pair.statuses(made)) == {SubStatus.ACTIVE: 3}
    received = await first.store.notifications.received(server_id, made[1].id, bytes(24), b"meta", 1, ())
    assert received.status.name == "OK"
    await send(sender, made[2])
    await until(lambda: made[2].id in {one.queue.notifier_id for one in second.pushes.delivered})


async def test_an_owner_that_lapsed_owns_again_on_the_same_connection(
    fleet: Fleet, replicas: Replicas, sender: Peer
) -> None:
    """Redis forgot the leases, and nobody has taken the server."""
    replica = await replicas.add()
    made = await notifiers(fleet, 3)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client, epoch = session.client, session.owned.epoch
    await replica.store.leases.stop()
    replica.subscriber._next_look = 0.0
    await until(lambda: session.owned.epoch > epoch)
    await replica.store.leases.start()
    await replicas.until_status(made)
    assert replica.sessions == [session] and session.client is client
    await send(sender, made[0])
    await replicas.until_received(1)


async def test_smp_edges_are_killed_and_come_back(
    fleet: Fleet, config: RouterConfig, pair: Replicas, sender: Peer
) -> None:
    """Notifications that the SMP router keeps meanwhile arrive afterwards."""
    made = await notifiers(fleet, 20)
    await pair.subscribe_all(made, fleet.address())
    owner = await owner_of(pair)
    port = fleet[0].ports[0]
    other = await fleet.client(1)
    await fleet.edges.pop(0).close()
    [session] = owner.sessions
    await until(lambda: not session.state.connected)
    await pair.until_status(made, SubStatus.INACTIVE)
    for one in made:
        await send(other, one)
    assert not pair.received()
    fleet.edges.append(await Edge.start(config, socks=[bind("127.0.0.1", port)]))
    await pair.until_status(made)
    await until(lambda: pair.received() == {one.id for one in made})


async def test_behaviour_6_nobody_waits_for_a_session(fleet: Fleet, replicas: Replicas, config: RouterConfig) -> None:
    """Subscriptions are made while their SMP router is away, and are subscribed as soon as a session is up."""
    replica = await replicas.add()
    made = await notifiers(fleet, 3)
    port, address = fleet[0].ports[0], fleet.address()
    await fleet.edges.pop(0).close()
    async with asyncio.timeout(5):
        for one in made:
            await replicas.subscribe(one, address)
    await until(lambda: replica.sessions)
    assert await replicas.statuses(made) == {SubStatus.NEW: 3}
    fleet.edges.append(await Edge.start(config, socks=[bind("127.0.0.1", port)]))
    await replicas.until_status(made)


async def test_an_smp_router_under_a_new_address_is_resubscribed_at_once(
    fleet: Fleet, replicas: Replicas, sender: Peer
) -> None:
    """The same identity answers elsewhere; a device names the new address with its next SNEW."""
    replica = await replicas.add(limits=replace(LIMITS, first_retry=30.0, max_retry=30.0))
    made = await notifiers(fleet, 5, edge=1)
    await replicas.subscribe_all(made[:4], fleet.address(0))
    [session] = replica.sessions
    await fleet.edges[0].close()
    await until(lambda: not session.state.connected)
    assert await replicas.statuses(made[:4]) == {SubStatus.INACTIVE: 4}
    await replicas.subscribe(made[4], fleet.address(1))
    await replicas.until_status(made, limit=5.0)
    server = await replica.store.servers.fetch(session.owned.server_id)
    assert server is not None and server.candidate is None
    assert server.address.port == str(fleet[1].ports[0]).encode()
    fleet.edges.pop(0)


async def test_a_false_address_changes_nothing(
    fleet: Fleet, replicas: Replicas, tmp_path: object, config: RouterConfig, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A device names another router's address for this identity."""
    directory = tmp_path_factory.mktemp("other")
    init_identity(directory / "identity", "localhost", "ed25519")
    (directory / "placement.key").write_bytes(os.urandom(32))
    other = Fleet(replace(config, transport=replace(config.transport, identity=directory / "identity")))
    await other.add()
    try:
        replica = await replicas.add()
        made = await notifiers(fleet, 2)
        await replicas.subscribe_all(made[:1], fleet.address())
        [session] = replica.sessions
        genuine = SmpAddress.parse(fleet.address())
        assert genuine is not None
        false = str(replace(genuine, port=other[0].ports[0]))
        await replicas.subscribe(made[1], false)
        await replicas.until_status(made)
        await reconnect(session)
        await replicas.until_status(made)
        server = await replica.store.servers.fetch(session.owned.server_id)
        assert server is not None
        assert server.candidate is None and server.address.port == str(genuine.port).encode()
    finally:
        await other.close()


async def test_behaviour_13_behaviour_20_flaw_10_a_store_error_at_the_start_is_retried(
    fleet: Fleet, replicas: Replicas, sender: Peer
) -> None:
    """The process goes on, and subscribes when the store answers."""
    replicas.deadline = 1.0
    first = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 100)
    await replicas.subscribe_all(made, fleet.address())
    await replicas.stop(first)
    replica = await replicas.add(use_service_credentials=False)
    await until(lambda: replica.sessions)
    async with replicas.store_down():
        await asyncio.sleep(1.4)
    await replicas.until_status(made)
    [session] = replica.sessions
    client = session.client
    assert client is not None
    async with replicas.store_down():
        client.connection.abort()
        await asyncio.sleep(1.4)
    await replicas.until_status(made)
    await send(sender, made[0])
    await replicas.until_received(1)


async def test_flaw_9_a_full_provider_does_not_stop_reading(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 30)
    await replicas.subscribe_all(made, fleet.address())
    replica.pushes.full = True
    for one in made:
        await send(sender, one)
    await until(lambda: replica.subscriber.stats.ntfReceived == 30)
    [session] = replica.sessions
    assert not replica.pushes.offered and not session._receiver.paused
    assert sum((await replica.store.pushes.waiting()).values()) == 30, "the pushes wait in the store"


async def test_wrong_keys_are_refused_and_others_go_on(fleet: Fleet, replicas: Replicas) -> None:
    await replicas.add()
    made = await notifiers(fleet, 6)
    wrong: list[Notifier] = made[:2]
    for one in wrong:
        one.key = generate()
    await asyncio.gather(*(replicas.subscribe(one, fleet.address()) for one in made))
    await replicas.until_status(wrong, SubStatus.AUTH)
    await replicas.until_status(made[2:])


async def test_states_of_own_servers_are_published(fleet: Fleet, pair: Replicas) -> None:
    made = await notifiers(fleet, 2)
    await pair.subscribe_all(made, fleet.address())
    owner = await owner_of(pair)
    server_id = owner.sessions[0].owned.server_id
    for replica in pair.all:
        async with asyncio.timeout(5):
            while True:
                server = await replica.store.servers.fetch(server_id)
                assert server is not None
                if server.state.get("count") == "2":
                    break
                await asyncio.sleep(0.05)
        assert server.state["name"] == "127.0.0.1" and server.state["subscribed"] == "1"
    assert owner.subscriber.numbers()["smp_service_active_subs_own"] == 2


async def test_a_replica_that_hears_that_it_lost_a_server_leaves_it_at_once(fleet: Fleet, replicas: Replicas) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 1)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    server_id, epoch = session.owned.server_id, session.owned.epoch
    await replica.subscriber._background.close()
    replica.subscriber.on_event(OwnershipLostEvent(server_id, epoch - 1))
    assert replica.sessions == [session]
    replica.subscriber.on_event(OwnershipLostEvent(server_id, epoch))
    assert not replica.sessions
    await until(lambda: session.client is None)


async def test_a_server_without_subscriptions_is_not_connected_to(
    fleet: Fleet, replicas: Replicas, sender: Peer
) -> None:
    """Any device can name any number of servers."""
    replica = await replicas.add(limits=replace(LIMITS, ping_interval=0.1))
    address = SmpAddress.parse(fleet.address())
    assert address is not None
    await replica.store.servers.ensure(address.server_host)
    replica.subscriber.announce()
    await until(lambda: replica.sessions)
    await asyncio.sleep(0.3)
    [session] = replica.sessions
    assert session.client is None
    made = await notifiers(fleet, 1)
    await replicas.subscribe(made[0], fleet.address())
    await replicas.until_status(made)
    found = await replica.store.subscriptions.fetch(made[0].sub_id)
    assert found is not None
    await replica.store.subscriptions.delete(found[0])
    await until(lambda: session.client is None)
