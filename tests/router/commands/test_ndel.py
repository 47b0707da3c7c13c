"""NDEL: waiting notifications go with the notifier, and with the queue."""

import asyncio

from tests.router.fleet import Fleet, err, sok
from tests.router.notifier import nkey
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import DELD, OK


async def test_notifications_are_dropped_with_the_notifier_and_with_the_queue(fleet: Fleet) -> None:
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    assert await s.send(queue, b"1", notification=True) == OK()
    assert await r.do(cmd.NDEL(), queue.rcv_id, queue.rcv_key) == OK()
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == err(Simple.AUTH)
    other = await nkey(r, queue)
    assert await n.do(cmd.NSUB(), other.ntf_id, other.key) == sok(n)
    await asyncio.sleep(0.05)
    await n.silence()
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await n.event()
    assert (event.entity_id, event.reply) == (other.ntf_id, DELD())
