"""The security invariants of services, SI-SVC-01 … 09, each by its name."""

import asyncio
import functools

import pytest

from tests.router.fleet import Fleet, err
from tests.services.service import (
    Notifier,
    Service,
    add_notifier,
    assert_exact,
    authorize,
    self_signed,
    stored_ids,
    text,
)
from tests.transport.peer import RawPeer, raw_peer
from weir.crypto.keys import KeyPair, generate
from weir.crypto.session_key import sign_session_key
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import CommandError, HandshakeError, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.handshake import (
    ClientHello,
    ClientService,
    ServiceAccepted,
    ServiceRefused,
    decode_service_response,
    encode_client_hello,
)
from weir.wire.smp.replies import ALLS, ENDS, IDS, MSG, OK, SOK, SOKS, CertChainKey


async def hello(fleet: Fleet, in_tls: ServiceCredentials, offered: ServiceCredentials, signer: KeyPair) -> object:
    """The router's answer to a service that shows one chain in TLS and offers another with a signed key."""
    peer: RawPeer = await raw_peer(fleet[0].ports[0], service=in_tls)
    await peer.hear()
    signed = sign_session_key(signer, generate("ed25519").spki)
    service = ClientService(offered.role, CertChainKey(offered.chain, signed))
    fingerprint = fleet[0].identity.fingerprint
    peer.say(encode_client_hello(ClientHello(19, fingerprint, generate("x25519").public, False, service)))
    content = await peer.hear()
    peer.close()
    assert isinstance(content, bytes)
    return decode_service_response(content)


async def test_si_svc_01_certificate_must_match_tls(fleet: Fleet) -> None:
    """A service cannot show one certificate in TLS and claim another, even one whose key it holds."""
    shown, claimed = self_signed(), self_signed()
    assert await hello(fleet, shown, claimed, claimed.key) == ServiceRefused(HandshakeError.BAD_AUTH)
    assert await fleet[0].store.registry.find_service(claimed.cert_hash) is None
    assert await fleet[0].store.registry.find_service(shown.cert_hash) is None
    accepted = await hello(fleet, shown, shown, shown.key)
    assert isinstance(accepted, ServiceAccepted)


async def test_si_svc_02_session_key_must_be_signed_by_the_certificate(fleet: Fleet) -> None:
    own, other = self_signed(), self_signed()
    assert await hello(fleet, own, own, other.key) == ServiceRefused(HandshakeError.BAD_AUTH)
    assert await fleet[0].store.registry.find_service(own.cert_hash) is None


async def test_si_svc_03_only_new_sub_and_nsub_carry_a_service_signature(fleet: Fleet) -> None:
    """… and in a service's session they must: nothing changes hands without it."""
    service = Service()
    session = await service.connect(fleet)
    plain = await fleet.client(1)
    queue = await plain.new(secure=True)
    raw = functools.partial(authorize, session)
    key = generate("ed25519")
    new = cmd.NEW(key.spki, generate("x25519").public, subscribe=True, queue_req=cmd.MessagingReq())
    stranger = generate("ed25519")
    assert await raw(new, b"", key, signed=None) == err(Simple.SERVICE)
    assert await raw(new, b"", key, signed=stranger) == err(Simple.SERVICE)
    assert await raw(new, b"", key, signed=session.key, bound=False) == err(Simple.AUTH), "not bound to the certificate"
    assert await raw(cmd.SUB(), queue.rcv_id, queue.rcv_key, signed=None) == err(Simple.SERVICE)
    assert await raw(cmd.SUB(), queue.rcv_id, queue.rcv_key, signed=stranger) == err(Simple.SERVICE)
    assert await raw(cmd.SUB(), queue.rcv_id, queue.rcv_key, signed=session.key, bound=False) == err(Simple.AUTH)
    for command in (cmd.ACK(b""), cmd.OFF(), cmd.DEL(), cmd.QUE(), cmd.GET(), cmd.KEY(stranger.spki)):
        assert await raw(command, queue.rcv_id, queue.rcv_key, signed=session.key) == err(Simple.SERVICE), command
    assert await stored_ids(fleet[0], session.service_id) == set()

    assert await raw(cmd.SUB(), queue.rcv_id, queue.rcv_key, signed=session.key) == SOK(session.service_id)
    assert isinstance(await raw(new, b"", key, signed=session.key), IDS)
    assert len(await stored_ids(fleet[0], session.service_id)) == 2


async def test_si_svc_03_in_a_block_of_many_each_signature_counts_for_itself(fleet: Fleet) -> None:
    session = await Service().connect(fleet)
    plain, stranger = await fleet.client(0), generate("ed25519")
    queues = [await plain.new() for _ in range(20)]
    forged = {3, 4, 11, 19}
    answers = await asyncio.gather(
        *(
            authorize(session, cmd.SUB(), q.rcv_id, q.rcv_key, signed=stranger if n in forged else session.key)
            for n, q in enumerate(queues)
        )
    )
    sok = SOK(session.service_id)
    assert answers == [err(Simple.SERVICE) if n in forged else sok for n in range(20)]
    honest = {q.rcv_id for n, q in enumerate(queues) if n not in forged}
    assert await stored_ids(fleet[0], session.service_id) == honest


async def test_si_svc_03_no_service_signature_without_a_service(fleet: Fleet) -> None:
    """A service signature in an ordinary session is an error, for a queue and for a notifier."""
    plain, signer = await fleet.client(0), generate("ed25519")
    queue = await plain.new(secure=True)
    notifier = await add_notifier(plain, queue)
    assert await authorize(plain, cmd.SUB(), queue.rcv_id, queue.rcv_key, signed=signer) == err(Simple.SERVICE)
    assert await authorize(plain, cmd.NSUB(), notifier.ntf_id, notifier.key, signed=signer) == err(Simple.SERVICE)
    assert await plain.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK()


async def test_si_svc_04_subs_needs_the_session_key(fleet: Fleet) -> None:
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    subs = cmd.SUBS(*service.totals)
    assert await session.do(subs, b"", session.key) == err(CommandError.NO_AUTH), "no entity"
    assert await session.do(subs, session.service_id, None) == err(CommandError.NO_AUTH)
    assert await session.do(subs, session.service_id, queue.rcv_key) == err(Simple.SERVICE), "the queue's key"
    assert await session.do(subs, session.service_id, generate("ed25519")) == err(Simple.SERVICE)
    assert await session.do(subs, queue.rcv_id, session.key) == err(Simple.SERVICE), "another entity"
    earlier = session.key
    await session.close()
    session = await service.connect(fleet, 1)
    assert await session.do(subs, session.service_id, earlier) == err(Simple.SERVICE), "another session's key"
    assert await session.subs() == SOKS(*service.totals)
    notifier = await Service.notifier().connect(fleet)
    nsubs = cmd.NSUBS(0, ids_hash.EMPTY)
    assert await notifier.do(nsubs, notifier.service_id, generate("ed25519")) == err(Simple.SERVICE)
    assert await notifier.subs() == SOKS(0, ids_hash.EMPTY)


async def test_si_svc_05_role_mismatch(fleet: Fleet) -> None:
    """One certificate has one role; a command of the other role is prohibited."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    credentials = service.credentials
    other_role = ServiceCredentials(ServiceRole.NOTIFIER, credentials.chain, credentials.key)
    for edge in (0, 1):
        with pytest.raises(ConnectError) as refused:
            await fleet.client(edge, service=other_role)
        assert refused.value.error is HandshakeError.BAD_SERVICE
    info = await fleet[1].store.registry.get_service(session.service_id)
    assert info is not None and info.role is ServiceRole.MESSAGING
    notifier = await Service.notifier().connect(fleet, 1)
    plain = await fleet.client(1)
    target = await plain.new()
    watched = await add_notifier(plain, target)
    assert await notifier.sub(target) == err(CommandError.PROHIBITED)
    assert await notifier.do(cmd.SUBS(0, ids_hash.EMPTY), notifier.service_id, notifier.key) == err(
        CommandError.PROHIBITED
    )
    assert await session.nsub(watched) == err(CommandError.PROHIBITED)
    assert await session.do(cmd.NSUBS(0, ids_hash.EMPTY), session.service_id, session.key) == err(
        CommandError.PROHIBITED
    )
    await assert_exact(fleet[0], session.service_id, [queue.rcv_id])
    await assert_exact(fleet[0], notifier.service_id, [])


async def test_si_svc_06_no_subs_without_a_service(fleet: Fleet) -> None:
    service = Service()
    session = await service.connect(fleet)
    await session.create()
    plain = await fleet.client(1)
    for command in (cmd.SUBS(*service.totals), cmd.NSUBS(*service.totals)):
        assert await plain.do(command, session.service_id, session.key) == err(Simple.SERVICE)
        assert await plain.do(command, session.service_id, generate("ed25519")) == err(Simple.SERVICE)
    await session.silence()


@pytest.mark.parametrize("times", [3])
async def test_si_svc_07_associations_survive_disconnection(fleet: Fleet, times: int) -> None:
    """… of the client, and of every edge: they are not an edge's to lose."""
    service = Service()
    session = await service.connect(fleet)
    service_id = session.service_id
    queues = [await session.create() for _ in range(3)]
    plain = await fleet.client(1)
    for n in range(times):
        await session.close()
        assert await plain.send(queues[0], b"%d" % n) == OK()
        await fleet[0].close()
        fleet.edges[0] = await fleet.add()
        fleet.edges.pop()
        session = await service.connect(fleet, n % 2)
        assert session.service_id == service_id
        events = await session.resume()
        assert [event.entity_id for event in events] == [queues[0].rcv_id]
        assert isinstance(events[0].reply, MSG)
        assert text(queues[0], events[0].reply) == b"%d" % n
        assert await session.ack(queues[0], events[0].reply.msg_id) == OK()
    await assert_exact(fleet[1], service_id, service.ids)


async def test_si_svc_07_notifier_associations_survive_disconnection(fleet: Fleet) -> None:
    service = Service.notifier()
    plain = await fleet.client(1)
    queue = await plain.new(secure=True)
    notifier: Notifier = await add_notifier(plain, queue)
    for edge in (0, 1, 0):
        session = await service.connect(fleet, edge)
        if not service.ids:
            assert await session.nsub(notifier) == SOK(session.service_id)
        else:
            assert await session.subs() == SOKS(*service.totals)
        sender = await fleet.client(edge)
        assert await sender.send(queue, b"ping", notification=True) == OK()
        event = await session.event()
        assert event.entity_id == notifier.ntf_id and type(event.reply).__name__ == "NMSG"
        assert await plain.text(queue) == b"ping"
        await session.close()
        await assert_exact(fleet[edge], session.service_id, service.ids)


@pytest.mark.parametrize("edge", [0, 1], ids=["same edge", "across edges"])
async def test_si_svc_08_takeover_ends_the_previous_client(fleet: Fleet, edge: int) -> None:
    service = Service()
    first = await service.connect(fleet)
    queue = await first.create()
    assert await first.subs() == SOKS(*service.totals)
    assert (await first.event()).reply == ALLS()
    second = await service.connect(fleet, edge)
    assert await second.resume() == []
    event = await first.event()
    assert (event.entity_id, event.reply) == (first.service_id, ENDS(*service.totals))
    plain = await fleet.client(1 - edge)
    assert await plain.send(queue, b"to the second") == OK()
    assert await second.text(queue) == b"to the second"
    await first.silence()
    await second.silence()


async def test_si_svc_09_drift_is_informational(fleet: Fleet) -> None:
    """SUBS succeeds for any expectation of the service, and returns the true totals."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    plain = await fleet.client(1)
    assert await plain.send(queue, b"waits") == OK()
    await session.text(queue)
    for expected in (
        (0, ids_hash.EMPTY),
        (7, bytes(range(16))),
        (1, bytes(16)),
        (-1, ids_hash.EMPTY),
        (1 << 62, bytes(16)),
    ):
        await session.close()
        assert await plain.send(queue, b"waits") == OK()
        session = await service.connect(fleet, 1)
        assert await session.subs(expected) == SOKS(*service.totals)
        (event,) = await session.fold()
        assert isinstance(event.reply, MSG)
        assert await session.ack(queue, event.reply.msg_id) == OK()
