"""QUE: what a recipient can learn of a queue."""

import json

from tests.router.fleet import Fleet, sok
from weir.crypto.keys import generate
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import INFO, MSG, OK


async def test_que(fleet: Fleet) -> None:
    r, s, g = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(subscribe=False)

    async def info(peer: object = r) -> object:
        reply = await peer.do(cmd.QUE(), queue.rcv_id, queue.rcv_key)  # type: ignore[attr-defined]
        assert isinstance(reply, INFO), reply
        return json.loads(reply.json)

    assert await info() == {"qiSnd": False, "qiNtf": False, "qiSize": 0}
    assert await r.sub(queue) == sok(r)
    assert await info() == {"qiSnd": False, "qiNtf": False, "qiSub": {"qSubThread": "noSub"}, "qiSize": 0}
    assert await s.send(queue, b"1") == OK()
    msg_id, _ = await r.msg(queue)
    described = await info()
    assert isinstance(described, dict)
    assert described["qiSub"] == {"qSubThread": "noSub", "qDelivered": described["qiMsg"]["msgId"]}
    assert described["qiMsg"]["msgType"] == "message" and described["qiSize"] == 1
    got = await g.do(cmd.GET(), queue.rcv_id, queue.rcv_key)
    assert isinstance(got, MSG) and got.msg_id == msg_id
    described = await info(g)
    assert isinstance(described, dict) and described["qiSub"]["qSubThread"] == "prohibitSub"
    key = generate("ed25519")
    assert await r.do(cmd.KEY(key.spki), queue.rcv_id, queue.rcv_key) == OK()
    await r.do(cmd.NKEY(key.spki, generate("x25519").public), queue.rcv_id, queue.rcv_key)
    described = await info()
    assert isinstance(described, dict) and described["qiSnd"] is True and described["qiNtf"] is True
