"""LSET: a link id belongs to one queue."""

import os

from tests.router.fleet import Fleet, err
from tests.router.links import DATA, NEWER, link_queue
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq
from weir.wire.smp.replies import LNK


async def test_a_link_that_another_queue_has(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    link_id = os.urandom(24)
    victim = await link_queue(r, link_id)
    attacker = await s.new(request=ContactReq())
    assert await s.do(cmd.LSET(link_id, NEWER), attacker.rcv_id, attacker.rcv_key) == err(Simple.AUTH)
    assert await s.do(cmd.LGET(), link_id) == LNK(victim.snd_id, DATA)
