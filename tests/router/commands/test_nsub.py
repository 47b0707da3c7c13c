"""NKEY and NSUB, and the notifications that follow."""

import asyncio

import pytest

from tests.redis.proxy import Proxy
from tests.router.fleet import Fleet, err, sok
from tests.router.notifier import nkey, nmsg
from weir.crypto.authenticator import sign
from weir.crypto.keys import generate
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_command
from weir.wire.smp.replies import DELD, END, OK, SOK
from weir.wire.smp.transmission import encode_client, for_auth


async def test_notifications(fleet: Fleet) -> None:
    r, s, n1, n2 = await fleet.client(0), await fleet.client(1), await fleet.client(1), await fleet.client(0)
    queue = await r.new(secure=True)
    first = await nkey(r, queue)
    notifier = await nkey(r, queue)
    assert first.ntf_id != notifier.ntf_id, "a repeated NKEY replaces the notifier"
    assert await n1.do(cmd.NSUB(), first.ntf_id, first.key) == err(Simple.AUTH)
    assert await n1.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n1)

    assert await s.send(queue, b"hello", notification=True) == OK()
    msg_id, _ = await r.msg(queue)
    assert await r.ack(queue, msg_id) == OK()
    meta = await nmsg(n1, notifier)
    assert meta.msg_id == msg_id
    assert await s.send(queue, b"no flag") == OK()
    assert await r.text(queue) == b"no flag"
    await asyncio.sleep(0.05)
    await n1.silence()

    assert await n2.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n2)
    event = await n1.event()
    assert (event.entity_id, event.reply) == (notifier.ntf_id, END())
    assert await s.send(queue, b"hello again", notification=True) == OK()
    assert await r.text(queue) == b"hello again"
    await nmsg(n2, notifier)
    await n1.silence()

    assert await r.do(cmd.NDEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await n2.event()
    assert (event.entity_id, event.reply) == (notifier.ntf_id, DELD())
    assert await r.do(cmd.NDEL(), queue.rcv_id, queue.rcv_key) == OK(), "again"
    assert await s.send(queue, b"hello there", notification=True) == OK()
    assert await r.text(queue) == b"hello there"
    await asyncio.sleep(0.05)
    await n2.silence()
    third = await nkey(r, queue)
    assert await n1.do(cmd.NSUB(), third.ntf_id, third.key) == sok(n1)
    assert await s.send(queue, b"one more", notification=True) == OK()
    await nmsg(n1, third)


async def test_notifications_wait_for_a_notifier(fleet: Fleet) -> None:
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    for text in (b"1", b"2", b"3"):
        assert await s.send(queue, text, notification=True) == OK()
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    metas = [await nmsg(n, notifier) for _ in range(3)]
    assert len({meta.msg_id for meta in metas}) == 3
    assert [meta.ts for meta in metas] == sorted(meta.ts for meta in metas)
    await n.silence()


async def test_a_service_signature_needs_a_service_session(fleet: Fleet) -> None:
    r, n = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    session = n.smp.session
    corr_id = b"2".ljust(24, b"\0")
    authorized, sent = for_auth(session, corr_id, notifier.ntf_id, encode_command(session.version, cmd.NSUB()))
    service_key = generate("ed25519")
    auth = sign("ed25519", notifier.key.private, authorized)
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    transmission = encode_client(session, sent, auth, sign("ed25519", service_key.private, authorized))
    n.smp.submit_encoded(transmission, corr_id, future.set_result)
    assert await future == err(Simple.SERVICE)


@pytest.mark.parametrize("edge", [0, 1])
async def test_a_notifier_that_leaves(fleet: Fleet, edge: int) -> None:
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(edge)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK()
    await n.close()
    assert await s.send(queue, b"1", notification=True) == OK()
    n = await fleet.client(1 - edge)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK()
    await nmsg(n, notifier)


async def test_a_notifier_that_is_deleted_before_an_unanswered_nsub(hasty: Fleet, proxy: Proxy) -> None:
    """DELD was left for the earlier subscription, and the client has got INTERNAL for the later one."""
    n, r = await hasty.client(0), await hasty.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    proxy.hold()
    deletion = r.do(cmd.NDEL(), queue.rcv_id, queue.rcv_key)
    subscription = n.do(cmd.NSUB(), notifier.ntf_id, notifier.key)
    assert await asyncio.gather(subscription, deletion) == [err(Simple.INTERNAL), OK()]
    proxy.release()
    event = await n.event()
    assert (event.entity_id, event.reply) == (notifier.ntf_id, DELD())
    await n.silence()
