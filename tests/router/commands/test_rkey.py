"""RKEY: the recipient keys of a contact queue."""

from tests.router.fleet import Fleet, err
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq
from weir.wire.smp.replies import INFO, OK


async def test_rkey(fleet: Fleet) -> None:
    c, other_edge = await fleet.client(0), await fleet.client(1)
    queue = await c.new("ed25519", request=ContactReq())
    old, added = queue.rcv_key, generate("ed25519")

    async def may(key: object) -> list[bool]:
        replies = [await peer.do(cmd.QUE(), queue.rcv_id, key) for peer in (c, other_edge)]  # type: ignore[arg-type]
        return [isinstance(reply, INFO) for reply in replies]

    assert await may(old) == [True, True] and await may(added) == [False, False]
    assert await c.do(cmd.RKEY((old.spki, added.spki)), queue.rcv_id, old) == OK()
    assert await may(old) == [True, True] and await may(added) == [True, True]
    assert await c.do(cmd.RKEY((added.spki,)), queue.rcv_id, added) == OK()
    assert await may(old) == [False, False] and await may(added) == [True, True]
    assert await c.do(cmd.RKEY((old.spki, added.spki)), queue.rcv_id, added) == OK()
    assert await may(old) == [True, True]
    assert await c.do(cmd.RKEY((added.spki,)), queue.rcv_id, old) == OK(), "a key can remove itself"
    assert await may(old) == [False, False]

    messaging = await c.new("ed25519")
    assert await c.do(cmd.RKEY((added.spki,)), messaging.rcv_id, messaging.rcv_key) == err(Simple.AUTH)
