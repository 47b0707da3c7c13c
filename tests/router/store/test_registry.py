"""Service certificates: roles, rotation by the operator, forgetting."""

import asyncio
import os

import pytest

from tests.router.store.conftest import OpenEdge
from weir.redis.errors import StoreError
from weir.router.store.records import EndsEvent, FoldProgress, Owner, ServiceError
from weir.wire.smp.commands import ServiceRole

M, N = ServiceRole.MESSAGING, ServiceRole.NOTIFIER


async def test_get_or_create(open_any: OpenEdge) -> None:
    edge = await open_any()
    fp, new_id = os.urandom(32), os.urandom(24)
    assert await edge.store.registry.ensure_service(fp, M, new_id) == new_id
    assert await edge.store.registry.ensure_service(fp, M, os.urandom(24)) == new_id
    assert await edge.store.registry.ensure_service(fp, N, os.urandom(24)) is ServiceError.ROLE_MISMATCH
    assert await edge.store.registry.find_service(fp) == new_id
    (info,) = await edge.store.registry.list_services()
    assert (info.service_id, info.role, info.fingerprints) == (new_id, M, {fp: None})
    counts = await edge.store.stats.counts()
    assert (counts["services"], counts["rcv_services"], counts["ntf_services"]) == (1, 1, 0)


async def test_at_the_same_moment(open_any: OpenEdge) -> None:
    a, b = await open_any(), await open_any()
    fp = os.urandom(32)
    found = await asyncio.gather(*(e.store.registry.ensure_service(fp, M, os.urandom(24)) for e in (a, b) * 5))
    assert len(set(found)) == 1


async def test_rotation_at_once(open_any: OpenEdge) -> None:
    edge = await open_any()
    old, new, service = os.urandom(32), os.urandom(32), os.urandom(24)
    await edge.store.registry.ensure_service(old, M, service)
    epoch = (await edge.store.services.takeover(service, 1, 1)).epoch
    await edge.new(service=service, owner=Owner(1, epoch))
    assert await edge.store.registry.rotate(old, new) == service
    assert await edge.store.registry.ensure_service(new, M, os.urandom(24)) == service
    assert await edge.store.registry.ensure_service(old, M, os.urandom(24)) is ServiceError.REFUSED
    assert (await edge.store.services.service_totals(service)).count == 1
    assert await edge.store.registry.rotate(old, new) == service  # again
    assert await edge.store.registry.rotate(new, old) == service  # the rotation is undone


async def test_rotation_with_an_overlap(open_any: OpenEdge) -> None:
    edge = await open_any()
    old, new, service = os.urandom(32), os.urandom(32), os.urandom(24)
    await edge.store.registry.ensure_service(old, N, service)
    await edge.store.registry.rotate(old, new, 3600)
    assert await edge.store.registry.ensure_service(old, N, os.urandom(24)) == service
    assert await edge.store.registry.ensure_service(new, N, os.urandom(24)) == service
    (info,) = await edge.store.registry.list_services()
    assert info.fingerprints[new] is None
    assert info.fingerprints[old] is not None


async def test_rotation_to_a_certificate_that_was_here_already(open_any: OpenEdge) -> None:
    edge = await open_any()
    old, new, service, empty = os.urandom(32), os.urandom(32), os.urandom(24), os.urandom(24)
    await edge.store.registry.ensure_service(old, M, service)
    await edge.store.registry.ensure_service(new, M, empty)  # the new certificate connected before the rotation
    assert await edge.store.registry.rotate(old, new) == service
    assert [info.service_id for info in await edge.store.registry.list_services()] == [service]

    busy = os.urandom(32)
    other = await edge.store.registry.ensure_service(busy, M, os.urandom(24))
    assert isinstance(other, bytes)
    epoch = (await edge.store.services.takeover(other, 1, 1)).epoch
    await edge.new(service=other, owner=Owner(1, epoch))
    with pytest.raises(StoreError):
        await edge.store.registry.rotate(new, busy)
    with pytest.raises(StoreError):
        await edge.store.registry.rotate(os.urandom(32), os.urandom(32))


@pytest.mark.parametrize("role", [M, N])
async def test_forget(open_any: OpenEdge, role: ServiceRole) -> None:
    a, b = await open_any(), await open_any()
    fp = os.urandom(32)
    service = await a.store.registry.ensure_service(fp, role, os.urandom(24))
    assert isinstance(service, bytes)
    epoch = (await a.store.services.takeover(service, 1, 1)).epoch
    if role is M:
        recs = [await a.new(service=service, owner=Owner(1, epoch)) for _ in range(130)]
    else:
        recs = [await a.new(ntf=True) for _ in range(130)]
        for rec in recs:
            await a.nsub(rec, 1, epoch, service)
    assert await b.store.registry.forget(service) == 130
    assert await a.settled() == [EndsEvent(service, 1, epoch)]
    found = await a.rcv(recs[0].rcv_id)
    assert found is not None
    assert (found.rcv_service, found.ntf_service) == (None, None)
    assert found.rev > recs[0].rev
    assert await b.store.registry.list_services() == []
    assert await b.store.registry.forget(service) is None
    fresh = os.urandom(24)
    assert await a.store.registry.ensure_service(fp, role, fresh) == fresh
    counts = await a.store.stats.counts()
    assert (counts["rcv_service_queues"], counts["ntf_service_queues"]) == (0, 0)


async def test_what_the_operator_sees(open_any: OpenEdge) -> None:
    edge = await open_any()
    service = await edge.store.registry.ensure_service(os.urandom(32), M, os.urandom(24))
    assert isinstance(service, bytes)
    progress = FoldProgress(10, 3, 7, "edge", 1_750_000_000.5, False)
    edge.store.registry.set_fold(service, progress)
    for kind in ("ok", "more", "more"):
        edge.store.registry.note_drift(service, kind)
    await edge.store.services.takeover(service, 4, 1)
    info = await edge.store.registry.get_service(service)
    assert info is not None
    assert (info.fold, info.drift) == (progress, {"ok": 1, "more": 2})
    assert info.totals.owner == f"{edge.store.edge.decode()}:4"
    assert info.totals.since is not None
    assert await edge.store.registry.get_service(os.urandom(24)) is None


async def test_labels(open_any: OpenEdge) -> None:
    edge = await open_any()
    registry = edge.store.registry
    one, other = os.urandom(24), os.urandom(24)
    for service in (one, other):
        await registry.ensure_service(os.urandom(32), M, service)
    await registry.set_label(one, "Bücher")
    assert await registry.labels([one, other, os.urandom(24)]) == {one: "Bücher"}
    assert {info.service_id: info.label for info in await registry.list_services()} == {one: "Bücher", other: ""}
    await registry.set_label(one, "")
    assert await registry.labels([one]) == {}
    await registry.forget(one)
    with pytest.raises(StoreError, match="no such service"):
        await registry.set_label(one, "again")
