"""A service that has expired while one of its sessions was idle."""

import pytest

from tests.router.fleet import Fleet
from tests.router.service import service_id, subs
from weir.client.smp import ConnectionClosed
from weir.crypto.keys import generate
from weir.router.delivery import ownership
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import SOKS


@pytest.fixture(autouse=True)
def long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every session began long ago."""
    monkeypatch.setattr(ownership, "_REGISTERED", 0.0)


async def test_the_idle_session_registers_it_again(fleet: Fleet, service: ServiceCredentials) -> None:
    """Otherwise the service's queues would belong to a service that nobody can connect as."""
    one = await fleet.client(0, service=service)
    registry = fleet[1].store.registry
    assert await registry.forget(await service_id(one)) == 0
    queue = await one.new()
    assert await registry.find_service(service.cert_hash) == await service_id(one)
    two = await fleet.client(1, service=service)
    hash_ = ids_hash.of_id(queue.rcv_id)
    assert await subs(two, 1, hash_) == SOKS(1, hash_)


async def test_the_idle_session_ends_when_another_session_has_begun_a_new_service(
    fleet: Fleet, service: ServiceCredentials
) -> None:
    one = await fleet.client(0, service=service)
    assert await fleet[1].store.registry.forget(await service_id(one)) == 0
    two = await fleet.client(1, service=service)
    assert await service_id(two) != await service_id(one)
    key = generate("x25519")
    new = cmd.NEW(key.spki, generate("x25519").public, queue_req=cmd.MessagingReq())
    with pytest.raises(ConnectionClosed):
        await one.do(new, b"", key)
    await two.new()
