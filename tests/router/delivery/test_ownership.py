"""A service that has expired while one of its sessions was idle; ENDS in the order of what happened."""

import asyncio

import pytest

from tests.router.fleet import Fleet
from tests.router.service import service_id, subs
from tests.router.session.test_outgoing import until
from weir.client.errors import ConnectionClosed
from weir.client.smp import Answer
from weir.crypto.keys import generate
from weir.router.delivery import ownership
from weir.router.store.records import NewQueue, NewResult
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import ALLS, ENDS, IDS, SOKS


@pytest.fixture
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session began long ago."""
    monkeypatch.setattr(ownership, "_REGISTERED", 0.0)


@pytest.mark.usefixtures("long_ago")
async def test_the_idle_session_registers_it_again(fleet: Fleet, service: ServiceCredentials) -> None:
    """Otherwise the service's queues would belong to a service that nobody can connect as."""
    one = await fleet.client(0, service=service)
    registry = fleet[1].store.registry
    assert await registry.forget(await service_id(one)) == 0
    queue = await one.new()
    assert await registry.find_service(service.cert_hash) == await service_id(one)
    two = await fleet.client(1, service=service)
    hash_ = ids_hash.of_id(queue.rcv_id)
    assert await subs(two, 1, hash_) == SOKS(1, hash_)


@pytest.mark.usefixtures("long_ago")
async def test_the_idle_session_ends_when_another_session_has_begun_a_new_service(
    fleet: Fleet, service: ServiceCredentials
) -> None:
    one = await fleet.client(0, service=service)
    assert await fleet[1].store.registry.forget(await service_id(one)) == 0
    two = await fleet.client(1, service=service)
    assert await service_id(two) != await service_id(one)
    key = generate("x25519")
    new = cmd.NEW(key.spki, generate("x25519").public, queue_req=cmd.MessagingReq())
    with pytest.raises(ConnectionClosed):
        await one.do(new, b"", key)
    await two.new()


@pytest.mark.parametrize("subs_at", [0, 1, 2])
async def test_a_service_that_is_lost_and_taken_again_within_one_block(
    fleet: Fleet, service: ServiceCredentials, monkeypatch: pytest.MonkeyPatch, subs_at: int
) -> None:
    """SUBS and two NEWs in one block; another session takes the service between SUBS and the NEWs.

    The client hears one ENDS, before the answers to the NEWs, which took the service again. An ENDS behind these
    answers would say that another session has the service, while this session gets its messages.
    """
    one, two = await fleet.client(0, service=service), await fleet.client(1, service=service)
    queues = fleet[0].store.queues
    execute = queues.new
    taking: list[asyncio.Task[Answer]] = []
    heard: list[Answer] = []

    async def after_two_has_the_service(new: NewQueue) -> NewResult:
        sessions = fleet[0].router.clients.values()
        await until(lambda: taking or any(session.subscriptions.service_subscribed for session in sessions))
        if not taking:
            taking.append(asyncio.create_task(subs(two, 0, ids_hash.EMPTY)))
        assert isinstance(await asyncio.shield(taking[0]), SOKS)
        return await execute(new)

    monkeypatch.setattr(queues, "new", after_two_has_the_service)
    one.smp.on_event = lambda transmission: heard.append(transmission.reply)
    session = one.smp.connection.service
    assert session is not None
    for place in range(3):
        if place == subs_at:
            one.smp.submit(cmd.SUBS(0, ids_hash.EMPTY), session.service_id, session.key_pair, heard.append)
            continue
        key = generate("x25519")
        new = cmd.NEW(key.spki, generate("x25519").public, queue_req=cmd.MessagingReq())
        one.smp.submit(new, b"", key, heard.append)
    await until(lambda: sum(isinstance(reply, IDS) for reply in heard) == 2)
    await one.smp.ping()
    assert [type(reply) for reply in heard if reply != ALLS()] == [SOKS, ENDS, IDS, IDS]
    assert isinstance((await two.event()).reply, ALLS)
    assert isinstance((await two.event()).reply, ENDS)
    await two.silence()
