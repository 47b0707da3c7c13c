"""A Redis that answers every tenth call late: nothing is lost, doubled or out of order, and connections stay."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.redis.proxy import Proxy, proxy, server
from tests.router.fleet import Fleet, Peer, Queue, body_of, err, router_config
from weir.router.config import RouterConfig
from weir.wire.errors import Simple
from weir.wire.smp.replies import MSG, OK

__all__ = ["proxy", "server"]

pytestmark = pytest.mark.all("waits for many late answers")

TIMEOUT = 0.5
MESSAGES = 40


@pytest.fixture
async def slow(config: RouterConfig, proxy: Proxy, placement: Path) -> AsyncIterator[Fleet]:
    """Two edges. The times are a tenth of the usual ones; the leases outlive several late answers in a row."""
    base = router_config(proxy.url, config.transport.identity, placement)
    fleet = Fleet(replace(base, redis=replace(base.redis, command_timeout=TIMEOUT, lease=5.0)))
    await fleet.add()
    await fleet.add()
    yield fleet
    proxy.pause = 0.0
    await fleet.close()


async def receive(peer: Peer, queue: Queue, until: bytes) -> list[bytes]:
    """Bodies in their order, each acknowledged. An ACK that failed is repeated, as clients do."""
    bodies: list[bytes] = []
    message: object = (await peer.event()).reply
    while True:
        assert isinstance(message, MSG), message
        bodies.append(body_of(queue, message))
        while (answer := await peer.ack(queue, message.msg_id)) == err(Simple.INTERNAL):
            pass
        if bodies[-1] == until:
            return bodies
        message = answer if isinstance(answer, MSG) else (await peer.event()).reply


@pytest.mark.parametrize("pause", [0.3, 0.8], ids=["in time", "too late"])
async def test_every_tenth_answer_is_late(slow: Fleet, proxy: Proxy, pause: float) -> None:
    r, s = await slow.client(0), await slow.client(1)
    queue = await r.new(secure=True)
    proxy.pause = pause
    receiving = asyncio.create_task(receive(r, queue, b"end"))
    answers = {}
    for n in range(MESSAGES):
        answers[b"%d" % n] = await s.send(queue, b"%d" % n)
    while await s.send(queue, b"end") != OK():
        pass
    bodies = await receiving
    stored = [body for body, answer in answers.items() if answer == OK()]
    assert [body for body in bodies if body in stored] == stored, "what was answered OK came once and in order"
    assert len(set(bodies)) == len(bodies)
    assert bodies[:-1] == sorted(bodies[:-1], key=int)
    if pause < TIMEOUT:
        assert len(stored) == MESSAGES
    assert not r.smp.closed.is_set() and not s.smp.closed.is_set()
