"""Expiry: the sweeper's job continues after failures and counts what it removed; a full queue has room again."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.router.fleet import Fleet, body_of, err
from weir.redis.errors import Unavailable
from weir.router.config import RouterConfig
from weir.router.expiry import Sweeper
from weir.router.stats import Stats
from weir.router.store.records import Swept
from weir.runtime.supervisor import Supervisor
from weir.wire.errors import Simple
from weir.wire.smp.replies import MSG, OK


class Slices:
    """Answers of the store, one after the other; the cursors it was asked for."""

    def __init__(self, *answers: Swept | Exception | None) -> None:
        self._answers = list(answers)
        self.cursors: list[int] = []
        self.done = asyncio.Event()

    async def sweep_slice(self, cursor: int) -> Swept | None:
        self.cursors.append(cursor)
        if not self._answers:
            self.done.set()
            return None
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_slices_follow_each_other(caplog: pytest.LogCaptureFixture) -> None:
    slices = Slices(
        Swept(7, 2, 1, 0),
        Unavailable("away"),
        None,  # another edge has the lock
        RuntimeError("a mistake"),
        Swept(0, 3, 0, 1, damaged=2),
    )
    stats = Stats()
    router: Any = SimpleNamespace(store=SimpleNamespace(sweeper=slices), stats=stats)
    supervisor = Supervisor()
    supervisor.every("the sweeper", 0.001, Sweeper(router).sweep)
    async with asyncio.timeout(5):
        await slices.done.wait()
    await supervisor.close()
    assert slices.cursors[:6] == [0, 7, 7, 7, 7, 0]
    assert (stats.msgExpired, stats.msgNtfExpired, stats.qDeletedAll, stats.qDamaged) == (5, 1, 1, 2)
    assert "the sweeper left out 2 queues whose keys are damaged" in caplog.messages


@pytest.mark.parametrize("sweeping", [True, False], ids=["swept", "found by SEND"])
async def test_a_full_queue_takes_messages_again_when_its_messages_expire(config: RouterConfig, sweeping: bool) -> None:
    """The recipient is subscribed and does not acknowledge. Neither the expired messages nor the marker come."""
    queues = replace(config.queues, quota=3, message_ttl=1.0, sweep_interval=0.05 if sweeping else 3600.0)
    fleet = Fleet(replace(config, queues=queues))
    await fleet.add()
    await fleet.add()
    try:
        r, s = await fleet.client(0), await fleet.client(1)
        queue = await r.new(secure=True)
        answers = [await s.send(queue, b"%d" % n) for n in range(4)]
        assert answers == [OK(), OK(), OK(), err(Simple.QUOTA)]
        msg_id, _ = await r.msg(queue)
        async with asyncio.timeout(20):
            while (answer := await s.send(queue, b"later")) == err(Simple.QUOTA):
                await asyncio.sleep(0.1)
        assert answer == OK()
        reply = await r.ack(queue, msg_id)
        assert body_of(queue, reply) == b"later"
        assert isinstance(reply, MSG) and await r.ack(queue, reply.msg_id) == OK()
        assert await s.send(queue, b"last") == OK()
        assert await r.text(queue) == b"last"
        await r.silence()
    finally:
        await fleet.close()
