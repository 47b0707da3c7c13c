"""OFF: a suspended queue, until its deletion."""

from tests.router.fleet import Fleet, err, sok
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import OK


async def test_off_and_del(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new("ed25519", secure=True)
    wrong = generate("ed25519")
    assert await s.send(queue, b"hello") == OK()
    assert await s.send(queue, b"hello 2") == OK()
    _, body = await r.msg(queue)
    assert isinstance(body, RcvMsgBody) and body.body == b"hello"
    assert await r.do(cmd.OFF(), queue.rcv_id, wrong) == err(Simple.AUTH)
    assert await r.do(cmd.OFF(), queue.snd_id, queue.rcv_key) == err(Simple.AUTH)
    assert await r.do(cmd.OFF(), queue.rcv_id, queue.rcv_key) == OK()
    assert await s.send(queue, b"hello") == err(Simple.AUTH)
    assert await s.do(cmd.SEND(False, b"hello"), queue.snd_id) == err(Simple.AUTH)
    assert await r.do(cmd.OFF(), queue.rcv_id, queue.rcv_key) == OK(), "again"
    assert await r.sub(queue) == sok(r), "SUB of a suspended queue"
    _, body = await r.msg(queue)
    assert isinstance(body, RcvMsgBody) and body.body == b"hello", "the message that was not acknowledged, again"
    assert await r.do(cmd.DEL(), queue.rcv_id, wrong) == err(Simple.AUTH)
    assert await r.do(cmd.DEL(), queue.snd_id, queue.rcv_key) == err(Simple.AUTH)
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    assert await s.send(queue, b"hello") == err(Simple.AUTH)
    assert await s.do(cmd.SEND(False, b"hello"), queue.snd_id) == err(Simple.AUTH)
    for command in (cmd.ACK(b""), cmd.OFF(), cmd.SUB(), cmd.DEL()):
        assert await r.do(command, queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)
    await r.silence()
