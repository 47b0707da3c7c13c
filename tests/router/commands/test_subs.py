"""SUBS and NSUBS: the transcripts of the reference's own tests. Other cases of services are in tests/services."""

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err, sok
from tests.router.notifier import Notifier, nkey, nmsg
from tests.router.service import credentials, service_id, subs, until_alls
from weir.crypto.certificates import make_self_signed
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import CommandError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.message import RcvMsgBody
from weir.wire.smp.replies import ALLS, DELD, END, ENDS, MSG, OK, SOK, SOKS
from weir.wire.versions import VersionRange


async def test_deliver_and_subscribe(fleet: Fleet, service: ServiceCredentials) -> None:
    s, one = await fleet.client(1), await fleet.client(0, service=service)
    queue = await one.new("ed25519", secure=True)
    sid = await service_id(one)
    assert queue.ids.service_id == sid
    assert await s.send(queue, b"hello") == OK()
    assert await s.send(queue, b"hello 2") == OK()
    msg_id, body = await one.msg(queue)
    assert isinstance(body, RcvMsgBody) and body.body == b"hello"
    reply = await one.ack(queue, msg_id)
    assert isinstance(reply, MSG), "ACK needs no service signature"
    assert await one.ack(queue, msg_id) == err(Simple.NO_MSG)
    assert await one.ack(queue, reply.msg_id) == OK()
    await one.close()
    assert await s.send(queue, b"hello 3") == OK()

    two = await fleet.client(1, service=service)
    assert await service_id(two) == sid
    hash_ = ids_hash.of_id(queue.rcv_id)
    key = two.smp.connection.service
    assert key is not None
    assert await two.do(cmd.SUBS(1, hash_), b"", key.key_pair) == err(CommandError.NO_AUTH)
    assert await subs(two, 1, hash_) == SOKS(1, hash_)
    found = await until_alls(two, [queue])
    assert found[queue.rcv_id][1] == b"hello 3"
    assert await two.ack(queue, found[queue.rcv_id][0]) == OK()
    assert await s.send(queue, b"hello 4") == OK()
    assert await two.text(queue) == b"hello 4"
    assert await subs(two, 1, hash_) == SOKS(1, hash_), "again: from the session, and no second ALLS"
    await two.silence()


async def test_upgrade_and_downgrade(fleet: Fleet, service: ServiceCredentials) -> None:
    s, plain = await fleet.client(1), await fleet.client(0)
    queues = [await plain.new("ed25519", secure=True) for _ in range(3)]
    await plain.close()
    assert await s.send(queues[0], b"hello 2") == OK()

    one = await fleet.client(0, service=service)
    sid = await service_id(one)
    assert await one.sub(queues[0]) == SOK(sid)
    msg_id, body = await one.msg(queues[0])
    assert isinstance(body, RcvMsgBody) and body.body == b"hello 2"
    assert await one.sub(queues[1]) == SOK(sid)
    assert await one.ack(queues[0], msg_id) == OK()
    assert await one.sub(queues[2]) == SOK(sid)
    assert await one.sub(queues[2]) == SOK(sid), "a retry"
    await one.close()
    assert await s.send(queues[0], b"hello 3.1") == OK()
    assert await s.send(queues[1], b"hello 3.2") == OK()

    two = await fleet.client(1, service=service)
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await subs(two, 3, hash_) == SOKS(3, hash_)
    found = await until_alls(two, queues)
    assert {rcv_id: body for rcv_id, (_, body) in found.items()} == {
        queues[0].rcv_id: b"hello 3.1",
        queues[1].rcv_id: b"hello 3.2",
    }
    for queue in queues[:2]:
        assert await two.ack(queue, found[queue.rcv_id][0]) == OK()
    await two.close()
    assert await s.send(queues[0], b"hello 4") == OK()

    back = await fleet.client(0)
    assert await back.do(cmd.SUBS(3, hash_), sid, queues[0].rcv_key) == err(Simple.SERVICE)
    assert await back.sub(queues[0]) == sok(back), "no service: the association ends"
    assert await back.text(queues[0]) == b"hello 4"
    three = await fleet.client(1, service=service)
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues[1:])
    assert await subs(three, 3, hash_) == SOKS(2, hash_)
    assert (await three.event()).reply == ALLS()
    assert await back.sub(queues[1]) == sok(back)
    event = await three.event()
    assert (event.entity_id, event.reply) == (queues[1].rcv_id, END()), "taken out of the service under it"
    assert await s.send(queues[1], b"hello 5") == OK()
    assert await back.text(queues[1]) == b"hello 5"
    stats = fleet[0].router.stats.rcvServices
    assert (stats.srvAssocNew, stats.srvAssocDuplicate, stats.srvAssocRemoved) == (3, 1, 2)
    assert fleet[1].router.stats.rcvServices.srvSubFewer == 1


@pytest.mark.parametrize("edge", [0, 1])
async def test_takeover(fleet: Fleet, service: ServiceCredentials, edge: int) -> None:
    s, one = await fleet.client(1), await fleet.client(0, service=service)
    queues = [await one.new(secure=True) for _ in range(3)]
    sid = await service_id(one)
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    assert await s.send(queues[0], b"1") == OK()
    msg_id, _ = await one.msg(queues[0])
    two = await fleet.client(edge, service=service)
    assert await subs(two, -1, ids_hash.EMPTY) == SOKS(3, hash_)
    event = await one.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(3, hash_))
    found = await until_alls(two, queues)
    assert found == {queues[0].rcv_id: (msg_id, b"1")}, "it was not acknowledged"
    assert await one.ack(queues[0], msg_id) == err(Simple.NO_MSG)
    assert await two.ack(queues[0], msg_id) == OK()
    assert await s.send(queues[1], b"2") == OK()
    assert await two.text(queues[1]) == b"2"
    await one.silence()
    assert await subs(one, 3, hash_) == SOKS(3, hash_), "and back"
    event = await two.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(3, hash_))
    assert (await one.event()).reply == ALLS()


async def test_first_service_signed_command_takes_the_service_over(fleet: Fleet, service: ServiceCredentials) -> None:
    s, one = await fleet.client(1), await fleet.client(0, service=service)
    queue = await one.new(secure=True)
    sid = await service_id(one)
    two = await fleet.client(1, service=service)
    other = await two.new(secure=True)
    event = await one.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(1, ids_hash.of_id(queue.rcv_id)))
    assert await s.send(queue, b"1") == OK()
    assert await two.text(queue) == b"1", "all of the service's queues are its now"
    assert await s.send(other, b"2") == OK()
    assert await two.text(other) == b"2"


async def test_deletion_in_a_service(fleet: Fleet, service: ServiceCredentials) -> None:
    one, other = await fleet.client(0, service=service), await fleet.client(1)
    queues = [await one.new() for _ in range(2)]
    assert await other.do(cmd.DEL(), queues[0].rcv_id, queues[0].rcv_key) == OK()
    event = await one.event()
    assert (event.entity_id, event.reply) == (queues[0].rcv_id, DELD())
    two = await fleet.client(1, service=service)
    hash_ = ids_hash.of_id(queues[1].rcv_id)
    assert await subs(two, 1, hash_) == SOKS(1, hash_)
    event = await one.event()
    assert event.reply == ENDS(1, hash_)


@pytest.mark.parametrize("version", [16, 17, 18])
async def test_nsubs_before_19(fleet: Fleet, version: int) -> None:
    """Bare NSUBS, SOKS and ENDS without the hash."""
    service = credentials(ServiceRole.NOTIFIER)
    r = await fleet.client(0)
    versions = VersionRange(6, version)
    n1, n2 = [await fleet.client(edge, service=service, versions=versions) for edge in (0, 1)]
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    sid = await service_id(n1)
    assert await n1.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK(sid)
    assert await subs(n2, -1, ids_hash.EMPTY) == SOKS(1, ids_hash.EMPTY)
    event = await n1.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(1, ids_hash.EMPTY))
    assert fleet[1].router.stats.ntfServices.srvSubOk == 1


async def test_notifier_service(fleet: Fleet) -> None:
    service = credentials(ServiceRole.NOTIFIER)
    r, s = await fleet.client(0), await fleet.client(1)
    n1, n2 = await fleet.client(0, service=service), await fleet.client(1, service=service)
    sid = await service_id(n1)
    queues = [await r.new(secure=True) for _ in range(2)]
    notifiers = [await nkey(r, queue) for queue in queues]
    ids = ids_hash.of_ids(notifier.ntf_id for notifier in notifiers)

    async def deliver(queue: Queue, notifier: Notifier, peer: Peer) -> None:
        assert await s.send(queue, b"hello", notification=True) == OK()
        assert await r.text(queue) == b"hello"
        await nmsg(peer, notifier)

    assert await n1.do(cmd.NSUB(), notifiers[0].ntf_id, notifiers[0].key) == SOK(sid)
    assert await n1.do(cmd.NSUB(), notifiers[0].ntf_id, notifiers[0].key) == SOK(sid), "a retry"
    await deliver(queues[0], notifiers[0], n1)
    assert await n2.do(cmd.NSUB(), notifiers[0].ntf_id, notifiers[0].key) == SOK(sid)
    event = await n1.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(1, ids_hash.of_id(notifiers[0].ntf_id)))
    await deliver(queues[0], notifiers[0], n2)
    await n1.silence()
    assert await n2.do(cmd.NSUB(), notifiers[1].ntf_id, notifiers[1].key) == SOK(sid)
    assert await subs(n1, 2, ids) == SOKS(2, ids)
    event = await n2.event()
    assert (event.entity_id, event.reply) == (sid, ENDS(2, ids))
    await deliver(queues[0], notifiers[0], n1)
    await deliver(queues[1], notifiers[1], n1)
    await n1.close()

    assert await s.send(queues[1], b"waits", notification=True) == OK()
    n3 = await fleet.client(0, service=service)
    assert await subs(n3, 2, ids) == SOKS(2, ids)
    await nmsg(n3, notifiers[1])
    await n3.silence()
    assert await r.do(cmd.NDEL(), queues[0].rcv_id, queues[0].rcv_key) == OK()
    event = await n3.event()
    assert (event.entity_id, event.reply) == (notifiers[0].ntf_id, DELD())
    command = cmd.NEW(queues[0].rcv_key.spki, bytes(32), queue_req=cmd.MessagingReq())
    assert await n3.do(command, b"", queues[0].rcv_key) == err(CommandError.PROHIBITED)


async def test_a_certificate_has_one_role(fleet: Fleet) -> None:
    issued = make_self_signed()
    await fleet.client(0, service=ServiceCredentials.self_signed(ServiceRole.MESSAGING, issued))
    with pytest.raises(ConnectError):
        await fleet.client(1, service=ServiceCredentials.self_signed(ServiceRole.NOTIFIER, issued))
