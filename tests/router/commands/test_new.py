"""NEW in every shape."""

import os
from dataclasses import replace
from hashlib import sha3_384

import pytest

from tests.router.fleet import Fleet, Queue, err, sok
from weir.crypto.keys import dh, generate
from weir.router.config import Auth
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import ContactReq, LinkData, MessagingReq, NewNtfCreds, QueueMode
from weir.wire.smp.replies import IDS, LNK, OK
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


async def test_new_without_subscription_is_not_for_services(fleet: Fleet, service: ServiceCredentials) -> None:
    one = await fleet.client(0, service=service)
    key = (await one.new()).rcv_key
    reply = await one.do(cmd.NEW(key.spki, bytes(32), subscribe=False, queue_req=cmd.MessagingReq()), b"", key)
    assert reply == err(CommandError.PROHIBITED)
