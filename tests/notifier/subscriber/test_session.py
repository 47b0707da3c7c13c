"""The session with one SMP server: real SMP edges, real subscriptions. The numbers are those of the behaviours."""

import base64
import logging
import os
from collections.abc import Collection
from dataclasses import replace

import pytest

from tests.notifier.subscriber.replicas import (
    LIMITS,
    Replicas,
    commands_sent,
    notifier,
    notifiers,
    reconnect,
    refusing_services,
    send,
    until,
)
from tests.router.fleet import Fleet, Peer
from tests.support.ports import free_port
from weir.crypto.identity import init_identity
from weir.crypto.keys import generate
from weir.notifier.store.records import Subscription
from weir.notifier.subscriber.credentials import service_credentials
from weir.router.commands.nsub import NsubHandler
from weir.router.commands.subs import SubsHandler
from weir.router.config import RouterConfig
from weir.wire.address import SmpAddress
from weir.wire.errors import Simple
from weir.wire.ntf.types import SubError, SubStatus
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_reply
from weir.wire.smp.replies import DELD, END, ENDS, ERR, NMSG, OK, SOK, SOKS, Reply
from weir.wire.smp.transmission import ServerTransmission
from weir.wire.versions import VersionRange


async def test_a_notification_arrives(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 3)
    for one in made:
        await replicas.subscribe(one, fleet.address())
    await replicas.until_status(made)
    await send(sender, made[1])
    await replicas.until_received(1)
    assert replicas.received() == {made[1].id}
    assert replica.subscriber.stats.ntfReceived == 1
    assert replica.subscriber.stats.ntfReceivedOwn == {"127.0.0.1": 1}
    [state] = replica.subscriber.servers()
    assert state.subscribed and state.service and state.service_active == 3 and state.last_notification is not None


async def test_the_service_comes_back_with_one_command(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 20)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    first = session.client
    assert first is not None and first.service_id is not None
    with commands_sent() as sent:
        await reconnect(session)
        await replicas.until_status(made)
    assert sent == [cmd.NSUBS]
    await send(sender, made[7])
    await replicas.until_received(1)


async def test_without_services_queue_by_queue(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    replica = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 20)
    await replicas.subscribe_all(made, fleet.address())
    [state] = replica.subscriber.servers()
    assert (state.service, state.service_active, state.queues_active) == (False, 0, 20)
    [session] = replica.sessions
    assert session.client is not None
    session.client.connection.abort()
    await until(lambda: state.queues_active == 0)
    await until(lambda: state.queues_active == 20)
    await replicas.until_status(made)
    await send(sender, made[0])
    await replicas.until_received(1)


@pytest.mark.parametrize("newest", [6, 7, 15, 16, 18])
async def test_older_smp_routers(fleet: Fleet, replicas: Replicas, sender: Peer, newest: int) -> None:
    """Below version 16, queue by queue. Below 19, NSUBS without count and hash: no hash is no mismatch."""
    made = await notifiers(fleet, 3, key_type="ed25519")
    for edge in fleet.edges:
        assert edge._listener is not None
        edge._listener.versions = VersionRange(6, newest)
    replica = await replicas.add()
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    first = session.client
    assert first is not None and first.session.version == newest
    assert session.state.service is (newest >= 16)
    await reconnect(session)
    await replicas.until_status(made)
    assert session.state.count == 3
    await send(sender, made[0])
    await replicas.until_received(1)


async def test_a_router_that_loses_services_and_gets_them_again(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    """A downgrade below version 16, and the upgrade after it."""
    replica = await replicas.add()
    made = await notifiers(fleet, 5)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    for newest, service in ((15, False), (19, True)):
        before = session.client
        assert before is not None
        for edge in fleet.edges:
            assert edge._listener is not None
            edge._listener.versions = VersionRange(6, newest)
        before.connection.abort()
        await until(lambda before=before: session.client not in (None, before))  # type: ignore[misc]
        await replicas.until_status(made)
        assert session.state.service is service
        await until(lambda: session.state.count == 5)
    await send(sender, made[0])
    await replicas.until_received(1)


async def test_behaviour_5_end_counts_only_from_the_current_session(fleet: Fleet, replicas: Replicas) -> None:
    replica = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 2)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    old = await reconnect(session)
    await replicas.until_status(made)
    session._on_event(old, ServerTransmission(b"", made[0].id, END()))
    await session._receiver.idle()
    assert await replicas.status(made[0]) is SubStatus.ACTIVE
    other = await fleet.client()
    assert await other.do(cmd.NSUB(), made[1].id, made[1].key) == SOK()
    await replicas.until_status([made[1]], SubStatus.END)
    assert await replicas.status(made[0]) is SubStatus.ACTIVE


async def test_behaviour_5_end_that_waited_for_the_store_does_not_end_the_next_session(
    fleet: Fleet, replicas: Replicas
) -> None:
    replicas.deadline = 1.0
    replica = await replicas.add(use_service_credentials=False)
    made = await notifiers(fleet, 1)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    old = session.client
    assert old is not None
    async with replicas.store_down():
        session._on_event(old, ServerTransmission(b"", bytes(24), NMSG(bytes(24), b"meta")))
        await until(lambda: session._receiver._failed)
        session._on_event(old, ServerTransmission(b"", made[0].id, END()))
        old.connection.abort()
        await until(lambda: session.client is not old)
    await replicas.until_status(made)
    await session._receiver.idle()
    assert await replicas.status(made[0]) is SubStatus.ACTIVE


async def test_behaviour_15_deld_counts_always(fleet: Fleet, replicas: Replicas) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 3)
    await replicas.subscribe_all(made, fleet.address())
    owner = await fleet.client()
    assert await owner.do(cmd.DEL(), made[0].queue.rcv_id, made[0].queue.rcv_key) == OK()
    await replicas.until_status([made[0]], SubStatus.DELETED)
    [session] = replica.sessions
    old = await reconnect(session)
    session._on_event(old, ServerTransmission(b"", made[1].id, DELD()))
    await replicas.until_status([made[1]], SubStatus.DELETED)
    await replicas.until_status([made[2]], SubStatus.ACTIVE)


async def test_behaviour_7_service_with_another_id(
    fleet: Fleet, replicas: Replicas, sender: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator of the SMP router has removed the service. Queue by queue, and ended ones are not touched."""
    replica = await replicas.add()
    made = await notifiers(fleet, 6)
    await replicas.subscribe_all(made, fleet.address())
    owner = await fleet.client()
    assert await owner.do(cmd.DEL(), made[0].queue.rcv_id, made[0].queue.rcv_key) == OK()
    await replicas.until_status([made[0]], SubStatus.DELETED)
    [session] = replica.sessions
    client = session.client
    assert client is not None and client.service_id is not None
    assert await fleet[0].store.registry.forget(client.service_id) == 5
    client.connection.abort()
    await until(lambda: "service unavailable" in caplog.text)
    await replicas.until_status(made[1:])
    assert await replicas.status(made[0]) is SubStatus.DELETED
    await until(lambda: session.state.service_active == 5)
    await send(sender, made[3])
    await replicas.until_received(1)


@pytest.mark.parametrize("answer", [ERR(Simple.SERVICE), SOKS(0, bytes(16))])
async def test_behaviour_7_service_that_the_router_does_not_know(
    fleet: Fleet,
    replicas: Replicas,
    sender: Peer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answer: Reply,
) -> None:
    """The router does not know the service, or the service's queues, e.g. after it was restored from a copy."""
    replica = await replicas.add()
    made = await notifiers(fleet, 4)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    assert session.client is not None

    async def execute(handler: SubsHandler) -> None:
        handler.answer(encode_reply(19, answer))

    with monkeypatch.context() as forgetful:
        forgetful.setattr(SubsHandler, "execute", execute)
        session.client.connection.abort()
        await until(lambda: "service unavailable: the server does not know" in caplog.text)
    await replicas.until_status(made)
    await until(lambda: session.state.service_active == 4)
    await send(sender, made[3])
    await replicas.until_received(1)


async def test_behaviour_7_service_that_the_router_refuses(
    fleet: Fleet, replicas: Replicas, sender: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First with a new certificate, then without one until the connection ends."""
    replica = await replicas.add()
    made = await notifiers(fleet, 4)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    assert session.client is not None and session.client.service_id is not None

    with refusing_services(fleet, monkeypatch):
        await reconnect(session)
        await replicas.until_status(made)
        await until(lambda: session.state.queues_active == 4)
        assert not session.state.service
        await send(sender, made[0])
        await replicas.until_received(1)
    second = session.client
    assert second is not None
    second.connection.abort()
    await until(lambda: session.client not in (None, second) and session.state.service_active == 4)
    await replicas.until_status(made)


async def test_a_router_that_refuses_the_service_for_a_moment_keeps_it(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The router's store may fail. Associations of millions of queues are not given up for that."""
    replica = await replicas.add(limits=replace(LIMITS, refused_after=60.0))
    made = await notifiers(fleet, 4)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    first = session.client
    assert first is not None
    with refusing_services(fleet, monkeypatch) as refused:
        first.connection.abort()
        await refused.wait()
        await until(lambda: session.state.problem == "BAD_SERVICE")
    await until(lambda: session.state.service_active == 4)
    assert session.client is not None and session.client.service_id == first.service_id


async def test_behaviour_18_mismatches_are_only_logged(
    fleet: Fleet, replicas: Replicas, caplog: pytest.LogCaptureFixture
) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 3)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    extra = await notifier(await fleet.client())
    assert await client.send(cmd.NSUB(), extra.id, extra.key) == SOK(client.service_id)
    client.connection.abort()
    await until(lambda: session.client not in (None, client) and session.state.subscribed)
    assert session.state.drift == 1
    assert "the service's subscription differs: number of queues" in caplog.text
    assert (await replicas.statuses(made)) == {SubStatus.ACTIVE: 3}


async def test_behaviour_22_notifications_without_a_subscription_are_counted(
    fleet: Fleet, replicas: Replicas, sender: Peer
) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 1)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    assert session.client is not None
    extra = await notifier(await fleet.client())
    assert await session.client.send(cmd.NSUB(), extra.id, extra.key) == SOK(session.client.service_id)
    await send(sender, extra)
    await until(lambda: replica.subscriber.stats.ntfReceivedAuth == 1)
    assert replica.subscriber.stats.ntfReceivedAuthOwn == {"127.0.0.1": 1}
    assert replica.subscriber.stats.ntfReceived == 0 and not replicas.received()


async def test_flaw_4_a_disconnect_with_queue_subscriptions_keeps_the_service(fleet: Fleet, replicas: Replicas) -> None:
    made = await notifiers(fleet, 4)
    replica = await replicas.add()
    await replicas.subscribe_all(made[:2], fleet.address())
    [session] = replica.sessions
    assert session.client is not None
    service_id = session.client.service_id
    other = replace(made[2], key=generate())  # its NSUB is refused: a subscription that no service covers
    await replicas.subscribe(other, fleet.address())
    await replicas.until_status([other], SubStatus.AUTH)
    for _ in range(2):
        await reconnect(session)
        await replicas.until_status(made[:2])
    server = await replica.store.servers.fetch(session.owned.server_id)
    assert server is not None and server.service_id == service_id == session.client.service_id


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (Simple.SERVICE, SubStatus.SERVICE),
        (Simple.QUOTA, SubError(b"SMP error QUOTA")),
        (Simple.INTERNAL, SubStatus.PENDING),
    ],
)
async def test_flaw_7_refused_subscriptions_are_tried_again(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch, error: Simple, status: SubStatus | SubError
) -> None:
    await replicas.add()
    made = await notifiers(fleet, 1)
    with monkeypatch.context() as refusing:
        refuse_nsub(refusing, error)
        await replicas.subscribe(made[0], fleet.address())
        await replicas.until_status(made, status)
    await replicas.until_status(made)


def refuse_nsub(monkeypatch: pytest.MonkeyPatch, error: Simple) -> None:
    monkeypatch.setattr(NsubHandler, "begin", lambda self: self.fail(error))


async def test_endless_answers_are_not_waited_for(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A time-out leaves the status, ends the connection, and NSUB is sent again."""
    replica = await replicas.add(limits=replace(LIMITS, reply_timeout=0.5))
    made = await notifiers(fleet, 2)
    await replicas.subscribe_all(made[:1], fleet.address())
    [session] = replica.sessions
    first = session.client
    with monkeypatch.context() as silent:
        silent.setattr(NsubHandler, "begin", lambda self: None)
        await replicas.subscribe(made[1], fleet.address())
        await until(lambda: session.client is not first)
        assert await replicas.status(made[1]) in (SubStatus.PENDING, SubStatus.INACTIVE)
    await replicas.until_status(made)


async def test_ends_by_another_client_of_the_service(fleet: Fleet, replicas: Replicas, sender: Peer) -> None:
    """The owner subscribes again: an earlier owner may not know yet that it is none."""
    replica = await replicas.add()
    made = await notifiers(fleet, 2)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    credentials = await service_credentials(replica.store.servers, session.owned.server_id)
    other = await fleet.client(1, service=credentials)
    service = other.smp.connection.service
    assert service is not None
    await other.do(cmd.NSUBS(0, bytes(16)), service.service_id, service.key_pair)
    await until(lambda: not session.state.subscribed)
    assert isinstance((await other.event()).reply, ENDS), "the owner has taken the service back"
    await until(lambda: session.state.service_active == 2 and session.state.subscribed)
    await send(sender, made[0])
    await replicas.until_received(1)


async def test_what_snew_makes_is_subscribed_in_batches(
    fleet: Fleet, replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 200)
    await replicas.subscribe_all(made[:1], fleet.address())
    [session] = replica.sessions
    asked: list[int] = []
    ask = replica.store.servers.to_subscribe

    async def counted(server_id: bytes, epoch: int, sub_ids: Collection[bytes]) -> list[Subscription]:
        asked.append(len(sub_ids))
        return await ask(server_id, epoch, sub_ids)

    monkeypatch.setattr(replica.store.servers, "to_subscribe", counted)
    await replicas.subscribe_all(made[1:], fleet.address())
    assert sum(asked) >= 199 and len(asked) < 150
    assert session.state.count == 200


async def test_behaviour_10_all_servers_at_once(
    config: RouterConfig, replicas: Replicas, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A server that does not answer holds up no other one."""
    fleets = []
    for number in range(3):
        directory = tmp_path_factory.mktemp(f"smp{number}")
        init_identity(directory / "identity", "localhost", "ed25519")
        (directory / "placement.key").write_bytes(os.urandom(32))
        fleet = Fleet(replace(config, transport=replace(config.transport, identity=directory / "identity")))
        await fleet.add()
        fleets.append(fleet)
    try:
        await replicas.add()
        made = [await notifiers(fleet, 2) for fleet in fleets]
        dead = replace(made[0][1], id=os.urandom(24))
        address = fleets[0].address().replace(str(fleets[0][0].ports[0]), str(free_port()))
        silent = address.replace(address[6:10], "AAAA")
        await replicas.subscribe(dead, silent)
        for fleet, of_fleet in zip(fleets, made, strict=True):
            await replicas.subscribe_all(of_fleet, fleet.address())
        assert await replicas.status(dead) in (SubStatus.NEW, SubStatus.PENDING)
    finally:
        for fleet in fleets:
            await fleet.close()


@pytest.mark.parametrize("allowed", [True, False])
async def test_private_addresses_are_refused_unless_allowed(fleet: Fleet, replicas: Replicas, allowed: bool) -> None:
    replica = await replicas.add(allow_local_servers=allowed)
    made = await notifiers(fleet, 1)
    await replicas.subscribe(made[0], fleet.address())
    if allowed:
        await replicas.until_status(made)
    else:
        await until(lambda: replica.sessions and replica.sessions[0].state.problem == "HOST")
        assert await replicas.status(made[0]) in (SubStatus.NEW, SubStatus.PENDING)


async def test_nothing_leaks(fleet: Fleet, replicas: Replicas, sender: Peer, caplog: pytest.LogCaptureFixture) -> None:
    """Logs name own servers only; no id, key or body anywhere."""
    caplog.set_level(logging.DEBUG)
    replica = await replicas.add(own_server_domains=())
    made = await notifiers(fleet, 4)
    await replicas.subscribe_all(made[:3], fleet.address())
    made[3].key = generate()
    await replicas.subscribe(made[3], fleet.address())
    await replicas.until_status(made[3:], SubStatus.AUTH)
    await send(sender, made[1])
    await replicas.until_received(1)
    [session] = replica.sessions
    client = session.client
    assert client is not None
    await fleet[0].store.registry.forget(client.service_id or b"")
    client.connection.abort()
    await until(lambda: "service unavailable" in caplog.text)
    ours = "\n".join(one.getMessage() for one in caplog.records if one.name.startswith("weir.notifier"))
    assert "SMP server: service unavailable" in ours
    secrets = [session.owned.server_id, *(one.id for one in made), *(one.sub_id for one in made)]
    secrets += [one.key.private for one in made]
    for secret in secrets:
        for form in (secret.hex(), base64.urlsafe_b64encode(secret).decode(), repr(secret)[2:-1]):
            assert form not in ours
    assert "127.0.0.1" not in ours


async def test_errors_of_the_server_itself_do_not_end_the_session(fleet: Fleet, replicas: Replicas) -> None:
    replica = await replicas.add()
    made = await notifiers(fleet, 1)
    await replicas.subscribe_all(made, fleet.address())
    [session] = replica.sessions
    client = session.client
    assert client is not None
    session._on_event(client, ServerTransmission(b"", made[0].id, ERR(Simple.INTERNAL)))
    await client.ping()
    assert await replicas.status(made[0]) is SubStatus.ACTIVE


async def test_a_server_that_never_answered_is_tried_ever_more_rarely(fleet: Fleet, replicas: Replicas) -> None:
    """Any device can name any number of servers at any address: the router must not become a flood there."""
    replica = await replicas.add(limits=replace(LIMITS, max_unknown_retry=100.0))
    made = await notifiers(fleet, 2)
    nobody = str(SmpAddress(os.urandom(32), ("127.0.0.1",), free_port()))
    await replicas.subscribe(made[0], nobody)
    await replicas.subscribe_all(made[1:], fleet.address())
    unknown, known = sorted(replica.sessions, key=lambda session: session.client is not None)
    await until(lambda: unknown.state.problem == "NETWORK")
    assert unknown._pauses.longest == 100.0
    for edge in fleet.edges:
        await edge.suspend()
    assert known.client is not None
    known.client.connection.abort()
    await until(lambda: known.state.problem == "NETWORK")
    assert known._pauses.longest == LIMITS.max_retry
