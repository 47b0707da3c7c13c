"""R-SVC-04: a service outlives its certificates. Leaves change freely; identities by the operator's word alone."""

import asyncio
import base64
import json
import os
import sys
from typing import Any

import pytest

from tests.router.fleet import Fleet, Queue
from tests.services.service import (
    Service,
    Session,
    assert_exact,
    make_queues,
    messages,
    new_identity,
    self_signed,
    under,
)
from weir.crypto.certificates import make_ca
from weir.redis.errors import StoreError
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import HandshakeError
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import ALLS, ENDS, OK, SOKS


async def weir(fleet: Fleet, *words: str) -> tuple[int, str]:
    """The `weir` command on this fleet's Redis: exit code and all it printed."""
    redis = fleet.config.redis
    environment = {**os.environ, "WEIR_REDIS_URL": redis.url, "WEIR_REDIS_PLACEMENT_KEY": str(redis.placement_key)}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "weir.cli.main",
        *words,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


def fp(credentials: ServiceCredentials) -> str:
    return base64.urlsafe_b64encode(credentials.cert_hash).decode().rstrip("=")


async def refused(fleet: Fleet, credentials: ServiceCredentials, edge: int) -> None:
    with pytest.raises(ConnectError) as failure:
        await fleet.client(edge, service=credentials)
    assert failure.value.error is HandshakeError.BAD_SERVICE


async def with_queues(fleet: Fleet, count: int) -> tuple[Service, bytes, list[Queue]]:
    service = Service()
    session = await service.connect(fleet)
    queues = await make_queues(session, count)
    await session.close()
    return service, session.service_id, queues


async def test_r_svc_04_leaf_certificates_change_freely(fleet: Fleet) -> None:
    identity = new_identity()
    service = Service(under(identity))
    session = await service.connect(fleet)
    service_id = session.service_id
    queues = await make_queues(session, 5)
    sender = await fleet.client(1)
    for edge in (1, 0, 1):
        service.credentials = under(identity)
        assert await sender.send(queues[0], b"m") == OK()
        await session.text(queues[0])
        assert await sender.send(queues[1], b"waits") == OK()
        previous, session = session, await service.connect(fleet, edge)
        assert session.service_id == service_id
        given = messages(await session.resume())
        assert set(given) == {queues[1].rcv_id}
        assert await session.ack(queues[1], given[queues[1].rcv_id].msg_id) == OK()
        while (event := await previous.event()).reply != ENDS(*service.totals):
            assert event.entity_id == queues[1].rcv_id or event.reply == ALLS()
    await assert_exact(fleet[0], service_id, service.ids)
    forged = make_ca("ed25519", "a service")  # the same name, another key
    stranger = await Service(under(forged)).connect(fleet)
    assert stranger.service_id != service_id


async def test_r_svc_04_rotate_at_once(fleet: Fleet) -> None:
    """The new certificate has the old ServiceId and all its queues; the old one is refused from then on."""
    service, service_id, queues = await with_queues(fleet, 30)
    old, new = service.credentials, self_signed()
    connected = await service.connect(fleet)
    assert await connected.resume() == []
    sender = await fleet.client(1)
    code, output = await weir(fleet, "service", "rotate", f"--from={fp(old)}", f"--to={fp(new)}", "--json")
    assert code == 0, output
    assert json.loads(output)["overlap_seconds"] == 0
    for edge in (0, 1):
        await refused(fleet, old, edge)
    # A session that was there stays; it is displaced like any other.
    assert await sender.send(queues[0], b"to the old session") == OK()
    await connected.text(queues[0])
    assert await sender.send(queues[1], b"waits") == OK()

    service.credentials = new
    session = await service.connect(fleet, 1)
    assert session.service_id == service_id
    given = messages(await session.resume())
    assert set(given) == {queues[1].rcv_id}
    assert (await connected.event()).entity_id == queues[1].rcv_id
    assert (await connected.event()).reply == ENDS(*service.totals)
    await assert_exact(fleet[0], service_id, service.ids)
    shown = await show(fleet, service_id)
    assert [c["fingerprint"] for c in shown["certificates"] if c["until"] is None] == [fp(new)]
    assert shown["queues"] == 30 and shown["connected"]


async def show(fleet: Fleet, service_id: bytes) -> dict[str, Any]:
    name = base64.urlsafe_b64encode(service_id).decode()
    code, output = await weir(fleet, "service", "show", "--json", "--", name)
    assert code == 0, output
    found: dict[str, Any] = json.loads(output)
    return found


async def test_r_svc_04_rotate_with_an_overlap(fleet: Fleet) -> None:
    """Both work until the overlap ends, and are one service."""
    service, service_id, queues = await with_queues(fleet, 5)
    old, new = service.credentials, self_signed()
    code, output = await weir(fleet, "service", "rotate", f"--from={fp(old)}", f"--to={fp(new)}", "--overlap=3s")
    assert code == 0, output
    sender = await fleet.client(1)
    first: Session = await service.connect(fleet)
    assert first.service_id == service_id
    assert await first.resume() == []
    service.credentials = new
    second = await service.connect(fleet, 1)
    assert second.service_id == service_id
    assert await second.resume() == []
    assert (await first.event()).reply == ENDS(*service.totals)
    assert await sender.send(queues[0], b"m") == OK()
    await second.text(queues[0])
    async with asyncio.timeout(10):
        while True:
            try:
                client = await fleet.client(0, service=old)
            except ConnectError as error:
                assert error.error is HandshakeError.BAD_SERVICE
                break
            await client.close()
            await asyncio.sleep(0.2)
    await refused(fleet, old, 1)
    assert (await service.connect(fleet)).service_id == service_id


async def test_r_svc_04_rotation_is_constant_work(fleet: Fleet) -> None:
    """No queue is touched: the same few calls for any number of queues."""
    calls = []
    for count in (1, 60):
        service, service_id, _ = await with_queues(fleet, count)
        store = fleet[0].store
        real, seen = store.core.call, [0]

        def call(*args: Any, real: Any = real, seen: list[int] = seen) -> Any:
            seen[0] += args[1] in ("rotate",)
            assert args[1] in ("rotate", "add_stats", "sweep_lock", "expire", "sweep_inbox"), args[1]
            return real(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.core, "call", call)
            assert await store.registry.rotate(service.credentials.cert_hash, os.urandom(32), 0) == service_id
        calls.append(seen[0])
    assert calls == [1, 1]


async def test_r_svc_04_nothing_rotates_by_itself(fleet: Fleet) -> None:
    """A new certificate is a new service; it gets none of the old one's queues, whatever it says."""
    service, service_id, queues = await with_queues(fleet, 3)
    sender = await fleet.client(1)
    assert await sender.send(queues[0], b"m") == OK()
    stranger = Service()
    session = await stranger.connect(fleet)
    assert session.service_id != service_id
    reply = await session.do(cmd.SUBS(*service.totals), service_id, session.key)
    assert type(reply).__name__ == "ERR"
    assert await session.subs(service.totals) == SOKS(0, ids_hash.EMPTY)
    assert await session.fold() == []
    await assert_exact(fleet[0], service_id, service.ids)


async def test_rotations_that_are_refused(fleet: Fleet) -> None:
    service, service_id, _ = await with_queues(fleet, 2)
    other, _, _ = await with_queues(fleet, 1)
    old, taken = fp(service.credentials), fp(other.credentials)
    unknown = fp(self_signed())
    for words, complaint in (
        ((unknown, old), "no service has the old certificate"),
        ((old, taken), "queues of its own"),
        ((old, "AAAA"), "32 bytes"),
        ((old, old), "the same"),
    ):
        code, output = await weir(fleet, "service", "rotate", f"--from={words[0]}", f"--to={words[1]}")
        assert code == 1 and complaint in output and output.count("\n") == 1, (words, output)
    session = await service.connect(fleet)
    assert session.service_id == service_id, "nothing has changed"
    assert await session.resume() == []


async def test_rotate_to_a_certificate_that_has_connected_already(fleet: Fleet) -> None:
    """The new certificate has made a service without queues: that service is deleted."""
    service, service_id, _ = await with_queues(fleet, 2)
    fresh = Service()
    early = await fresh.connect(fleet)
    assert early.service_id != service_id
    await early.close()
    words = (f"--from={fp(service.credentials)}", f"--to={fp(fresh.credentials)}")
    code, output = await weir(fleet, "service", "rotate", *words)
    assert code == 0, output
    service.credentials = fresh.credentials
    session = await service.connect(fleet, 1)
    assert session.service_id == service_id
    assert await session.resume() == []
    assert await fleet[0].store.registry.get_service(early.service_id) is None


async def test_rotate_back(fleet: Fleet) -> None:
    service, service_id, _ = await with_queues(fleet, 2)
    old, new = service.credentials, self_signed()
    store = fleet[0].store
    assert await store.registry.rotate(old.cert_hash, new.cert_hash, 0) == service_id
    await refused(fleet, old, 0)
    assert await store.registry.rotate(new.cert_hash, old.cert_hash, 0) == service_id
    await refused(fleet, new, 1)
    assert (await service.connect(fleet)).service_id == service_id


async def test_a_role_does_not_rotate(fleet: Fleet) -> None:
    """The new certificate continues a messaging service as a messaging service only."""
    service, service_id, _ = await with_queues(fleet, 1)
    new = self_signed()
    await fleet[0].store.registry.rotate(service.credentials.cert_hash, new.cert_hash, 0)
    await refused(fleet, ServiceCredentials(ServiceRole.NOTIFIER, new.chain, new.key), 0)
    service.credentials = new
    assert (await service.connect(fleet)).service_id == service_id


async def test_forget(fleet: Fleet) -> None:
    """The owner gets ENDS, the queues are free, and the certificate may start a new service."""
    service, service_id, queues = await with_queues(fleet, 10)
    session = await service.connect(fleet)
    assert await session.resume() == []
    name = base64.urlsafe_b64encode(service_id).decode()
    code, output = await weir(fleet, "service", "forget", "--yes", "--", name)
    assert code == 0 and "10 queues" in output, output
    assert (await session.event()).reply == ENDS(*service.totals)
    plain, sender = await fleet.client(0), await fleet.client(1)
    assert await sender.send(queues[0], b"m") == OK()
    await session.silence()
    assert type(await plain.sub(queues[0])).__name__ == "SOK"
    assert await plain.text(queues[0]) == b"m"
    await session.close()
    anew = await service.connect(fleet, 1)
    assert anew.service_id != service_id
    service.ids.clear()
    assert await anew.resume() == []
    with pytest.raises(StoreError):
        await fleet[0].store.registry.rotate(os.urandom(32), os.urandom(32), 0)


async def test_list_show_drift(fleet: Fleet) -> None:
    service, service_id, queues = await with_queues(fleet, 4)
    sender = await fleet.client(1)
    assert await sender.send(queues[0], b"m") == OK()
    session = await service.connect(fleet)
    assert await session.subs((1, ids_hash.EMPTY)) == SOKS(*service.totals)
    await session.fold()
    shown = await show(fleet, service_id)
    assert shown["ids_hash"] == service.totals[1].hex()
    assert (shown["queues"], shown["with_messages"], shown["role"]) == (4, 1, "messaging")
    assert shown["connected"] and shown["edge"] == fleet[0].edge_id and shown["since"]
    assert shown["fold"]["done"] and shown["fold"]["delivered"] == 1
    assert shown["drift"] == {"ok": 0, "more": 1, "fewer": 0, "diff": 0}
    await session.close()
    async with asyncio.timeout(5):
        while (await show(fleet, service_id))["connected"]:
            pass
    name = base64.urlsafe_b64encode(service_id).decode().rstrip("=")
    code, output = await weir(fleet, "service", "list")
    assert code == 0 and name in output
    code, output = await weir(fleet, "service", "drift", "--json")
    assert {"service": name, "ok": 0, "more": 1, "fewer": 0, "diff": 0} in json.loads(output)
