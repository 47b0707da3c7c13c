"""Notifications leave in batches, and are asked for until Redis gives them."""

from dataclasses import replace
from typing import Any

import pytest

from tests.router.fleet import Fleet, sok
from tests.router.notifier import nkey, nmsg
from tests.router.service import credentials, service_id, subs
from weir.client.smp import Request
from weir.redis.errors import UNAVAILABLE
from weir.router.config import RouterConfig
from weir.router.delivery import notifications
from weir.router.store.records import NtfPage
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import OK, SOK, SOKS


async def test_notifications_of_many_messages_leave_in_one_batch(fleet: Fleet, config: RouterConfig) -> None:
    """Notifications of many messages leave in one batch after the interval."""
    await fleet.add(queues=replace(config.queues, notification_interval=0.3))
    r, s, n = await fleet.client(0), await fleet.client(1), await fleet.client(2)
    queues = [await r.new(secure=True) for _ in range(5)]
    notifiers = [await nkey(r, queue) for queue in queues]
    for notifier in notifiers:
        assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == sok(n)
    sends = [Request(cmd.SEND(True, b"1"), queue.snd_id, queue.snd_key) for queue in queues]
    assert await s.smp.send_many(sends) == [OK()] * 5
    first = await n.event()
    assert n.smp.events.qsize() == 4, "all came in one block"
    rest = [await n.event() for _ in range(4)]
    assert len({event.entity_id for event in (first, *rest)}) == 5


async def test_notifications_that_wait_for_a_service_while_redis_does_not_answer(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waiting notifications raised their event before the service came, and the later ones raise none."""
    service = credentials(ServiceRole.NOTIFIER)
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    notifier = await nkey(r, queue)
    n = await fleet.client(1, service=service)
    assert await n.do(cmd.NSUB(), notifier.ntf_id, notifier.key) == SOK(await service_id(n))
    await n.close()
    assert await s.send(queue, b"1", notification=True) == OK()
    store = fleet[0].store.services
    ntf_page, failures = store.ntf_page, [UNAVAILABLE, UNAVAILABLE]

    async def failing(*args: Any) -> NtfPage:
        if failures:
            raise failures.pop()
        return await ntf_page(*args)

    monkeypatch.setattr(store, "ntf_page", failing)
    monkeypatch.setattr(notifications, "_RETRY", 0.01)
    n = await fleet.client(0, service=service)
    ids = ids_hash.of_id(notifier.ntf_id)
    assert await subs(n, 1, ids) == SOKS(1, ids)
    await nmsg(n, notifier)
