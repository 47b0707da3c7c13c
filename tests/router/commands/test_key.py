"""KEY and SKEY."""

from tests.router.fleet import Fleet, err
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq
from weir.wire.smp.replies import OK


async def test_skey(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new("ed448")
    key, other = generate("ed448"), generate("ed448")
    assert await s.do(cmd.SKEY(key.spki), queue.snd_id, other) == err(Simple.AUTH), "not signed by the key"
    assert await s.do(cmd.SKEY(key.spki), queue.rcv_id, key) == err(Simple.AUTH), "the recipient's id"
    assert await s.do(cmd.SKEY(key.spki), queue.snd_id, key) == OK()
    assert await s.do(cmd.SKEY(other.spki), queue.snd_id, other) == err(Simple.AUTH), "another key"
    assert await s.do(cmd.SKEY(key.spki), queue.snd_id, key) == OK(), "the same key again"
    queue.snd_key = key
    assert await s.send(queue, b"hello") == OK()
    assert await r.text(queue) == b"hello"


async def test_skey_of_a_contact_queue(fleet: Fleet) -> None:
    r = await fleet.client()
    queue = await r.new(request=ContactReq())
    key = generate("x25519")
    assert await r.do(cmd.SKEY(key.spki), queue.snd_id, key) == err(Simple.AUTH)


async def test_a_key_that_another_edge_set_is_known_at_once(fleet: Fleet) -> None:
    """Each edge has the queue's credentials in its cache; the revision says that they have changed."""
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new()
    assert await s.send(queue, b"1") == OK()
    key = generate("x25519")
    assert await r.do(cmd.KEY(key.spki), queue.rcv_id, queue.rcv_key) == OK()
    assert await s.send(queue, b"2") == err(Simple.AUTH)
    queue.snd_key = key
    assert await s.send(queue, b"2") == OK()
