"""SUBS, NSUBS, SOKS and ENDS at every version that has services: bare at 16–18, with count and hash from 19 on."""

import pytest

from tests.router.fleet import Fleet
from tests.services.service import Service, Session, add_notifier, assert_exact, drift_of, fleet_stats, messages
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.codec import encode_command, encode_reply
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import ENDS, NMSG, OK, SOK, SOKS
from weir.wire.versions import VersionRange

VERSIONS = pytest.mark.parametrize("version", [16, 17, 18, 19])


def totals_at(version: int, service: Service) -> tuple[int, bytes]:
    """The totals as a client of this version reads them: before 19 there is no hash."""
    count, total = service.totals
    return count, total if version >= 19 else ids_hash.EMPTY


@VERSIONS
async def test_notifier_service(fleet: Fleet, version: int) -> None:
    service = Service.notifier()
    versions = VersionRange(6, version)
    recipient, sender = await fleet.client(1), await fleet.client(1)
    session = await service.connect(fleet, versions=versions)
    assert session.smp.session.version == version
    queue = await recipient.new(secure=True)
    notifier = await add_notifier(recipient, queue)
    assert await session.nsub(notifier) == SOK(session.service_id)
    await session.close()
    assert await sender.send(queue, b"1", notification=True) == OK()

    before = await fleet_stats(fleet)
    first = await service.connect(fleet, versions=versions)
    assert await first.subs() == SOKS(*totals_at(version, service))
    after = await fleet_stats(fleet)
    assert after["ntfServices_srvSubOk"] - before.get("ntfServices_srvSubOk", 0) == 1, "a bare NSUBS is no drift"
    assert isinstance((await first.event()).reply, NMSG)
    second = await service.connect(fleet, 1)
    assert await second.subs() == SOKS(*service.totals)
    event = await first.event()
    assert (event.entity_id, event.reply) == (first.service_id, ENDS(*totals_at(version, service)))
    await assert_exact(fleet[0], first.service_id, [notifier.ntf_id])
    assert await drift_of(fleet, first.service_id) == {"ok": 2}


@VERSIONS
async def test_messaging_service(fleet: Fleet, version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our client offers this role from 19 on; another one may from 16 on, and is served."""
    monkeypatch.setattr("weir.transport.smp_handshake.RCV_SERVICE", 16)
    service = Service()
    versions = VersionRange(6, version)
    session: Session = await service.connect(fleet, versions=versions)
    assert session.smp.session.version == version
    queue = await session.create()
    await session.close()
    sender = await fleet.client(1)
    assert await sender.send(queue, b"waits") == OK()
    first = await service.connect(fleet, versions=versions)
    assert await first.subs() == SOKS(*totals_at(version, service))
    given = messages(await first.fold())
    assert set(given) == {queue.rcv_id}
    assert await first.ack(queue, given[queue.rcv_id].msg_id) == OK()
    second = await service.connect(fleet, 1, versions=versions)
    assert await second.subs() == SOKS(*totals_at(version, service))
    assert (await first.event()).reply == ENDS(*totals_at(version, service))
    assert await second.fold() == []


@pytest.mark.parametrize("version", [6, 11, 15, 18])
async def test_no_messaging_service_before_19(fleet: Fleet, version: int) -> None:
    """The client does not offer it: an ordinary session, and SUB takes queues out of the service."""
    service = Service()
    session = await service.connect(fleet)
    queue = await session.create()
    old = await fleet.client(1, service=service.credentials, versions=VersionRange(6, version))
    assert old.smp.service_id is None
    if version >= 7:
        reply = await old.sub(queue)
        assert reply in (SOK(), OK())
        assert (await session.event()).entity_id == queue.rcv_id
        await assert_exact(fleet[0], session.service_id, [])


async def test_old_notification_server_counts_minus_one(fleet: Fleet) -> None:
    """−1 says that it does not count: never drift."""
    service = Service.notifier()
    recipient = await fleet.client(1)
    session = await service.connect(fleet)
    for _ in range(3):
        await session.nsub(await add_notifier(recipient, await recipient.new()))
    await session.close()
    before = await fleet_stats(fleet)
    session = await service.connect(fleet, 1)
    assert await session.subs((-1, ids_hash.EMPTY)) == SOKS(*service.totals)
    after = await fleet_stats(fleet)
    names = ("srvSubOk", "srvSubMore", "srvSubFewer", "srvSubDiff")
    changed = [after.get(f"ntfServices_{n}", 0) - before.get(f"ntfServices_{n}", 0) for n in names]
    assert changed == [1, 0, 0, 0]


@VERSIONS
@pytest.mark.parametrize("role", list(ServiceRole)[:2], ids=lambda role: role.name)
def test_bytes(version: int, role: ServiceRole) -> None:
    command = cmd.SUBS(3, bytes(range(16))) if role is ServiceRole.MESSAGING else cmd.NSUBS(3, bytes(range(16)))
    tag = b"SUBS" if role is ServiceRole.MESSAGING else b"NSUBS"
    count = (3).to_bytes(8, "big")
    full = version >= 19
    assert encode_command(version, command) == tag + (b" " + count + b"\x10" + bytes(range(16)) if full else b"")
    for reply in (SOKS(3, bytes(range(16))), ENDS(3, bytes(range(16)))):
        tail = b"\x10" + bytes(range(16)) if full else b""
        assert encode_reply(version, reply) == type(reply).__name__.encode() + b" " + count + tail
