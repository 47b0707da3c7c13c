"""ACK: without an id, and twice in one block."""

from tests.router.fleet import Fleet, body_of, err
from weir.client.smp import Request
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import OK


async def test_two_acks_in_one_block(fleet: Fleet) -> None:
    """The second ACK has no message: after GET and after SUB, with an id and without one."""
    r, g, s = await fleet.client(0), await fleet.client(0), await fleet.client(1)
    for ack in (cmd.ACK(b""), None):
        queue = await r.new()
        for text in (b"1", b"2"):
            assert await s.send(queue, text) == OK()
        msg_id, _ = await r.msg(queue)
        got = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
        assert body_of(queue, got) == b"1"
        both = [Request(ack or cmd.ACK(msg_id), queue.rcv_id, queue.rcv_key)] * 2
        assert await g.smp.send_many(both) == [OK(), err(Simple.NO_MSG)]
        first, second = await r.smp.send_many(both)
        assert body_of(queue, first) == b"2" and second == err(Simple.NO_MSG)


async def test_ack_without_an_id(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    assert await r.ack(queue, b"") == err(Simple.NO_MSG)
    assert await s.send(queue, b"1") == OK()
    await r.msg(queue)
    assert await r.ack(queue, b"other") == err(Simple.NO_MSG)
    assert await r.ack(queue, b"") == OK()
