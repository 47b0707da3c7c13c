"""The things that the sessions of an edge share."""

import asyncio

import pytest

from tests.router.fleet import Fleet
from weir.router.session.outgoing import Outgoing
from weir.wire.smp.replies import ALLS, OK


async def test_ids_are_random_and_whole(fleet: Fleet) -> None:
    ids = {fleet[0].router.random_id() for _ in range(1000)}
    assert len(ids) == 1000 and {len(one) for one in ids} == {24}


async def test_generations_never_come_back(fleet: Fleet) -> None:
    router = fleet[0].router
    gens = [router.next_gen() for _ in range(100)]
    assert gens == sorted(set(gens))


async def test_a_task_that_fails_is_logged_without_what_it_was_about(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise RuntimeError("a mistake")

    fleet[0].router.spawn(fail())
    while fleet[0].router._tasks:
        await asyncio.sleep(0)
    (message,) = [record.message for record in caplog.records]
    assert message.startswith("a command failed (RuntimeError in test_router.py, line ")
    assert "a mistake" not in caplog.text


async def test_everybody_is_disconnected_when_the_lease_is_lost(fleet: Fleet) -> None:
    peers = [await fleet.client(0) for _ in range(3)]
    other = await fleet.client(1)
    fleet[0].router.close_clients()
    async with asyncio.timeout(5):
        for peer in peers:
            await peer.smp.closed.wait()
    assert not fleet[0].router.clients
    await other.smp.ping()


async def test_answers_of_one_turn_share_a_block(fleet: Fleet) -> None:
    """The OKs of a pipeline leave together: far fewer blocks than answers."""
    r, s = await fleet.client(0), await fleet.client(1)
    queues = [await r.new(secure=True) for _ in range(10)]
    assert {type(await s.send(queue, b"0")) for queue in queues} == {OK}
    client = next(iter(fleet[1].router.clients.values()))
    before = client.conn.taken
    replies = await asyncio.gather(*(s.send(queue, b"1") for queue in queues * 5))
    assert set(map(type, replies)) == {OK}
    assert (client.conn.taken - before) / 16406 < 25


async def test_what_cannot_be_sent_harms_no_other_client(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers of one turn leave one client after the other. The client whose answers fail is disconnected."""
    peers = [await fleet.client(0) for _ in range(3)]
    for peer in peers:
        await peer.smp.ping()
    sessions = list(fleet[0].router.clients.values())
    flush = Outgoing.flush

    def failing(outgoing: Outgoing) -> None:
        if outgoing is sessions[1].outgoing:
            raise KeyError("a mistake")
        flush(outgoing)

    monkeypatch.setattr(Outgoing, "flush", failing)
    for session in sessions:
        session.outgoing.push(b"", b"", b"ALLS")
    async with asyncio.timeout(5):
        await peers[1].smp.closed.wait()
    for peer in (peers[0], peers[2]):
        assert (await peer.event()).reply == ALLS()
        await peer.smp.ping()
