"""SUBs of one turn of the loop go to the store together, and nothing of the same session overtakes them."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.router.fleet import Fleet, body_of, raw_blocks, sok
from weir.client.smp import Request
from weir.router.store.records import QueueRecord
from weir.runtime import turns as turning
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import MSG, OK


@pytest.fixture(autouse=True)
def _long_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine would end a slice after one command."""
    monkeypatch.setattr(turning, "_SLICE", 1.0)
    monkeypatch.setattr(turning, "_SLICE_ALONE", 1.0)


async def test_subs_of_a_turn_are_one_call(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, r = await fleet.client(1), await fleet.client(0)
    queues = [await owner.new(subscribe=False) for _ in range(32)]
    store = fleet[0].store.subscriptions
    sub_many, sizes = store.sub_many, list[int]()

    def counting(records: Sequence[QueueRecord], *rest: Any) -> None:
        sizes.append(len(records))
        sub_many(records, *rest)

    monkeypatch.setattr(store, "sub_many", counting)
    requests = [Request(cmd.SUB(), queue.rcv_id, queue.rcv_key) for queue in queues]
    assert await r.smp.send_many(requests) == [sok(r)] * 32
    assert sum(sizes) == 32 and max(sizes) >= 8


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
