"""NKEY: a queue has one notifier; a repeated NKEY replaces it."""

import pytest

from tests.router.fleet import Fleet, err, sok
from tests.router.notifier import nkey, nmsg
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import DELD, OK


@pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])
async def test_a_notifier_that_is_replaced(fleet: Fleet, edge: int) -> None:
    """The owner of the previous notifier id hears DELD, and waiting notifications go with that id."""
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(edge)
    queue = await r.new(secure=True)
    first = await nkey(r, queue)
    assert await n.do(cmd.NSUB(), first.ntf_id, first.key) == sok(n)
    second = await nkey(r, queue)
    assert second.ntf_id != first.ntf_id
    event = await n.event()
    assert (event.entity_id, event.reply) == (first.ntf_id, DELD())
    assert await n.do(cmd.NSUB(), first.ntf_id, first.key) == err(Simple.AUTH)
    assert await n.do(cmd.NSUB(), second.ntf_id, second.key) == sok(n)
    assert await s.send(queue, b"hello", notification=True) == OK()
    await nmsg(n, second)


async def test_only_the_recipient_makes_a_notifier(fleet: Fleet) -> None:
    r = await fleet.client(0)
    queue = await r.new(secure=True)
    command = cmd.NKEY(generate("ed25519").spki, generate("x25519").public)
    assert await r.do(command, queue.rcv_id, queue.snd_key) == err(Simple.AUTH)
    assert await r.do(command, queue.snd_id, queue.snd_key) == err(Simple.AUTH)
