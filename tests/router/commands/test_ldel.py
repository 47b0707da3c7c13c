"""LDEL: a link and its data are deleted, and the link id is free again."""

import os

from tests.router.fleet import Fleet, err
from tests.router.links import DATA, link_queue
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq
from weir.wire.smp.replies import LNK, OK


async def test_a_link_is_deleted_once_and_for_all(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    link_id = os.urandom(24)
    queue = await link_queue(r, link_id)
    assert await s.do(cmd.LGET(), link_id) == LNK(queue.snd_id, DATA)
    for _ in range(2):
        assert await r.do(cmd.LDEL(), queue.rcv_id, queue.rcv_key) == OK()
        assert await s.do(cmd.LGET(), link_id) == err(Simple.AUTH)
    assert await s.send(queue, b"the queue stays") == OK()
    assert await r.text(queue) == b"the queue stays"


async def test_the_link_id_is_free_again(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    link_id = os.urandom(24)
    first = await link_queue(r, link_id)
    other = await s.new(request=ContactReq())
    assert await s.do(cmd.LSET(link_id, DATA), other.rcv_id, other.rcv_key) == err(Simple.AUTH)
    assert await r.do(cmd.LDEL(), first.rcv_id, first.rcv_key) == OK()
    assert await s.do(cmd.LSET(link_id, DATA), other.rcv_id, other.rcv_key) == OK()
    assert await r.do(cmd.LGET(), link_id) == LNK(other.snd_id, DATA)


async def test_a_queue_without_a_link(fleet: Fleet) -> None:
    r = await fleet.client(0)
    queue = await r.new(request=ContactReq())
    assert await r.do(cmd.LDEL(), queue.rcv_id, queue.rcv_key) == OK()
