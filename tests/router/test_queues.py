"""NEW in every shape, KEY, SKEY, RKEY, OFF, DEL and QUE."""

import json
import os
from dataclasses import replace
from hashlib import sha3_384

import pytest

from tests.router.fleet import Fleet, Queue, err, sok
from weir.crypto.keys import dh, generate
from weir.router.config import Auth
from weir.wire import commands as cmd
from weir.wire.commands import ContactReq, LinkData, MessagingReq, NewNtfCreds, QueueMode
from weir.wire.errors import CommandError, Simple
from weir.wire.message import RcvMsgBody
from weir.wire.replies import DELD, IDS, INFO, LNK, MSG, OK
from weir.wire.versions import VersionRange


def new(queue_req: cmd.QueueReq | None = None, **options: object) -> tuple[cmd.NEW, object]:
    key = generate("x25519")
    return cmd.NEW(key.spki, generate("x25519").public, queue_req=queue_req, **options), key  # type: ignore[arg-type]


@pytest.mark.parametrize("version", range(6, 20))
async def test_new_at_every_version(fleet: Fleet, version: int) -> None:
    r = await fleet.client(0, versions=VersionRange(6, version))
    s = await fleet.client(1)
    key, dh_key = generate("ed25519"), generate("x25519")
    request = MessagingReq() if version >= 9 else None
    reply = await r.do(cmd.NEW(key.spki, dh_key.public, queue_req=request), b"", key)
    assert isinstance(reply, IDS)
    assert reply.queue_mode is (QueueMode.MESSAGING if version >= 9 else None)
    queue = Queue(reply, key, dh(reply.dh_key, dh_key.private))
    assert await s.send(queue, b"hello") == OK()
    assert await r.text(queue) == b"hello"


async def test_new_without_a_subscription(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(subscribe=False)
    assert await s.send(queue, b"1") == OK()
    await r.silence()


async def test_new_with_notifier_credentials(fleet: Fleet) -> None:
    r, n, s = await fleet.client(0), await fleet.client(1), await fleet.client(1)
    ntf_key = generate("ed25519")
    creds = NewNtfCreds(ntf_key.spki, generate("x25519").public)
    queue = await r.new(ntf_creds=creds)
    assert queue.ids.ntf_creds is not None
    assert await n.do(cmd.NSUB(), queue.ids.ntf_creds.ntf_id, ntf_key) == sok(n)
    assert await s.send(queue, b"1", notification=True) == OK()
    assert (await n.event()).entity_id == queue.ids.ntf_creds.ntf_id


@pytest.mark.parametrize("mode", [QueueMode.MESSAGING, QueueMode.CONTACT])
async def test_a_sender_id_of_the_client_choosing(fleet: Fleet, mode: QueueMode) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    corr_id, link_id = os.urandom(24), os.urandom(24)
    snd_id = sha3_384(corr_id).digest()[:24]
    data = LinkData(b"fixed data", b"user data")
    request: cmd.QueueReq
    request = MessagingReq((snd_id, data)) if mode is QueueMode.MESSAGING else ContactReq((link_id, (snd_id, data)))
    key, dh_key = generate("ed25519"), generate("x25519")
    command = cmd.NEW(key.spki, dh_key.public, queue_req=request)
    assert await r.do(command, b"", key) == err(CommandError.PROHIBITED), "not made from the correlation id"
    ids = await r.do(command, b"", key, corr_id=corr_id)
    assert isinstance(ids, IDS) and ids.snd_id == snd_id and ids.queue_mode is mode
    if mode is QueueMode.CONTACT:
        assert ids.link_id == link_id
        assert await s.do(cmd.LGET(), link_id) == LNK(snd_id, data)

    # The answer was lost: the same NEW, from another connection, brings the same queue.
    again = await fleet.client(1)
    assert await again.do(command, b"", key, corr_id=corr_id) == ids
    queue = Queue(ids, key, dh(ids.dh_key, dh_key.private))
    assert (await r.event()).entity_id == ids.rcv_id, "END: the other connection is subscribed now"
    assert await s.send(queue, b"hello") == OK()
    assert await again.text(queue) == b"hello"

    other = replace(command, rcv_auth_key=generate("ed25519").spki)
    assert await r.do(other, b"", key, corr_id=corr_id) == err(Simple.AUTH), "its key does not authorise it"
    other_key = generate("ed25519")
    other = replace(command, rcv_auth_key=other_key.spki)
    assert await r.do(other, b"", other_key, corr_id=corr_id) == err(Simple.AUTH), "the id is taken"


async def test_new_queues_can_be_switched_off(fleet: Fleet) -> None:
    await fleet.add(auth=Auth(new_queues=False))
    c = await fleet.client(2)
    command, key = new(MessagingReq())
    assert await c.do(command, b"", key) == err(Simple.AUTH)  # type: ignore[arg-type]


async def test_basic_auth(fleet: Fleet) -> None:
    await fleet.add(auth=Auth(create_password="secret"))
    c = await fleet.client(2)
    for password, allowed in ((None, False), (b"other", False), (b"secret", True)):
        command, key = new(MessagingReq(), basic_auth=password)
        reply = await c.do(command, b"", key)  # type: ignore[arg-type]
        assert isinstance(reply, IDS) if allowed else reply == err(Simple.AUTH)


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


async def test_deletion_by_another_connection(fleet: Fleet) -> None:
    r = await fleet.client(0)
    old = await fleet.client(0, versions=VersionRange(6, 9))
    other = await fleet.client(1)
    queue, old_queue = await r.new(), await old.new()
    assert await other.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()
    event = await r.event()
    assert (event.entity_id, event.reply) == (queue.rcv_id, DELD())
    assert await other.do(cmd.DEL(), old_queue.rcv_id, old_queue.rcv_key) == OK()
    event = await old.event()
    assert event.entity_id == old_queue.rcv_id and type(event.reply).__name__ == "END", "before version 10"
    await other.silence()


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
