"""SUBs that follow each other go to the store together, and nothing of the same session overtakes them."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.router.fleet import Fleet, body_of, raw_blocks, sok
from tests.router.session.test_block import stopped
from tests.router.session.test_outgoing import until
from weir.client.smp import Request
from weir.redis.embedded import Embedded
from weir.router.edge import Edge
from weir.router.store.records import QueueRecord
from weir.runtime import turns as turning
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import MSG, OK


@pytest.fixture(autouse=True)
def _long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine would end a slice after one command."""
    monkeypatch.setattr(turning, "_SLICE", 1.0)
    monkeypatch.setattr(turning, "_SLICE_ALONE", 1.0)


def batches_of(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the batches that go to the store from now on."""
    store, sizes = edge.store.subscriptions, list[int]()
    sub_many = store.sub_many

    def counting(records: Sequence[QueueRecord], *rest: Any) -> None:
        sizes.append(len(records))
        sub_many(records, *rest)

    monkeypatch.setattr(store, "sub_many", counting)
    return sizes


async def test_subs_of_a_turn_are_one_call(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, r = await fleet.client(1), await fleet.client(0)
    queues = [await owner.new(subscribe=False) for _ in range(32)]
    sizes = batches_of(fleet[0], monkeypatch)
    requests = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in queues]
    assert await r.smp.send_many(requests) == [sok(r)] * 32
    assert sum(sizes) == 32 and max(sizes) >= 8


@pytest.mark.parametrize("alone", [True, False])
async def test_subs_of_several_turns_are_one_call(
    fleet: Fleet, redis: Embedded, monkeypatch: pytest.MonkeyPatch, alone: bool
) -> None:
    """A slice that ends after one command does not end the batch. Redis answers when every SUB is begun."""
    monkeypatch.setattr(turning, "_SLICE", 0.0)
    monkeypatch.setattr(turning, "_SLICE_ALONE", 0.0)
    monkeypatch.setattr(turning, "_ALONE", 0.0 if alone else 3600.0)
    owner, r = await fleet.client(1), await fleet.client(0)
    queues = [await owner.new(subscribe=False) for _ in range(100)]
    sizes = batches_of(fleet[0], monkeypatch)
    requests = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in queues]
    clients = fleet[0].router.clients
    session = clients[max(clients)]
    with stopped(redis):
        answers = asyncio.create_task(r.smp.send_many(requests))
        await until(lambda: session.incoming.in_progress == 1 and session.incoming.block is None)
    assert await answers == [sok(r)] * 100
    assert sizes == [100]


async def test_a_del_does_not_overtake_the_sub_of_its_block(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turning, "_SLICE", 0.0)
    monkeypatch.setattr(turning, "_SLICE_ALONE", 0.0)
    owner, r = await fleet.client(1), await fleet.client(0)
    queue, other = await owner.new(subscribe=False), await owner.new(subscribe=False)
    requests = [
        Request(command, of.rcv_id, of.rcv_key)
        for command, of in ((cmd.SUB(), queue), (cmd.DEL(), queue), (cmd.SUB(), other))
    ]
    [block] = await raw_blocks(r, requests, 1)
    assert [t.reply for t in block] == [sok(r), OK(), sok(r)]  # type: ignore[attr-defined]


async def test_a_queue_twice_in_a_block(fleet: Fleet) -> None:
    """Each SUB brings the message again, as SUBs in blocks of their own do."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"1") == OK()
    twice = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key)] * 2
    assert await r.smp.send_many(twice) == [sok(r)] * 2
    msg_id, _ = await r.msg(queue)
    assert await r.ack(queue, msg_id) == OK()


async def test_an_ack_does_not_overtake_the_sub_of_its_block(fleet: Fleet) -> None:
    """The message was given to an earlier session of the client, which acknowledges it in the next one."""
    before, s = await fleet.client(0), await fleet.client(1)
    queue = await before.new()
    for text in (b"1", b"2"):
        assert await s.send(queue, text) == OK()
    msg_id, _ = await before.msg(queue)
    await before.close()
    r = await fleet.client(0)
    requests = [Request(command, queue.rcv_id, queue.rcv_key) for command in (cmd.SUB(), cmd.ACK(msg_id))]
    [block] = await raw_blocks(r, requests, 1)
    replies = [t.reply for t in block]  # type: ignore[attr-defined]
    assert replies[0] == sok(r)
    assert isinstance(replies[1], MSG)
    assert body_of(queue, replies[1]) == b"2"
