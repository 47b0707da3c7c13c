"""LGET and LKEY: an invitation and a contact address, from NEW to LDEL."""

import os

from tests.router.fleet import Fleet, err
from tests.router.links import DATA, NEWER, link_queue
from weir.crypto.keys import generate
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import LinkData
from weir.wire.smp.replies import LNK, OK


async def test_an_invitation(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await link_queue(r, None)
    link_id = queue.ids.link_id
    assert link_id is not None
    assert await s.do(cmd.LGET(), link_id) == err(Simple.AUTH), "not a contact address"
    assert await r.do(cmd.LSET(link_id, NEWER), queue.rcv_id, queue.rcv_key) == OK()
    key, other = generate("ed25519"), generate("ed25519")
    assert await s.do(cmd.LKEY(key.spki), link_id) == err(CommandError.NO_AUTH)
    assert await s.do(cmd.LKEY(key.spki), link_id, other) == err(Simple.AUTH)
    assert await s.do(cmd.LKEY(key.spki), queue.rcv_id, key) == err(Simple.AUTH)
    assert await s.do(cmd.LKEY(key.spki), link_id, key) == LNK(queue.snd_id, NEWER)
    assert await s.do(cmd.LKEY(other.spki), link_id, other) == err(Simple.AUTH), "secured with another key"
    assert await s.do(cmd.LKEY(key.spki), link_id, key) == LNK(queue.snd_id, NEWER)
    assert await r.do(cmd.LSET(link_id, NEWER), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH), "secured"
    queue.snd_key = key
    assert await s.send(queue, b"first") == OK()
    assert await r.text(queue) == b"first"
    assert await s.do(cmd.LKEY(key.spki), link_id, key) == err(Simple.AUTH), "the first SEND removes the link data"
    assert await r.do(cmd.LDEL(), queue.rcv_id, queue.rcv_key) == OK()


async def test_a_contact_address(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    link_id = os.urandom(24)
    queue = await link_queue(r, link_id)
    key = generate("ed25519")
    assert await s.do(cmd.LKEY(key.spki), link_id, key) == err(Simple.AUTH)
    assert await s.do(cmd.LGET(), link_id, key) == err(CommandError.HAS_AUTH)
    assert await s.do(cmd.LGET(), queue.rcv_id) == err(Simple.AUTH)
    assert await s.do(cmd.LGET(), link_id) == LNK(queue.snd_id, DATA)
    assert await s.do(cmd.LGET(), link_id) == LNK(queue.snd_id, DATA)
    assert await r.do(cmd.LSET(link_id, NEWER), queue.rcv_id, queue.rcv_key) == OK()
    assert await s.do(cmd.LGET(), link_id) == LNK(queue.snd_id, NEWER)
    assert await r.do(cmd.LSET(os.urandom(24), NEWER), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)
    changed = LinkData(b"changed fixed data", b"user data")
    assert await r.do(cmd.LSET(link_id, changed), queue.rcv_id, queue.rcv_key) == err(Simple.AUTH)
    assert await r.do(cmd.LDEL(), queue.rcv_id, queue.rcv_key) == OK()
    assert await r.do(cmd.LDEL(), queue.rcv_id, queue.rcv_key) == OK(), "again"
    assert await s.do(cmd.LGET(), link_id) == err(Simple.AUTH)
