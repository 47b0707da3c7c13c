"""Answers of one turn leave together, and a client that does not read is not read from."""

import asyncio

from tests.notifier.router import LIMIT, Router
from weir.client.ntf import NtfRequest
from weir.wire.ntf.types import PING, PONG


async def test_a_client_that_does_not_read_is_not_read_from_until_it_reads(router: Router) -> None:
    device = await router.device()
    [session] = router.shared.clients.values()
    device.client.connection.pause_reading()
    answers: list[object] = []
    sent = 0
    async with asyncio.timeout(4 * LIMIT):
        while not (session.outgoing.full and session.incoming.paused):
            for _ in range(700):
                device.client.submit(PING(), b"", None, answers.append)
            sent += 700
            await asyncio.sleep(0.005)
        device.client.connection.resume_reading()
        while len(answers) < sent:
            await asyncio.sleep(0.01)
    assert answers == [PONG()] * sent
    assert not session.outgoing.full


async def test_answers_of_one_turn_share_blocks(router: Router) -> None:
    device = await router.device()
    blocks = 0
    on_block = device.client.on_block

    def count(content: bytes) -> None:
        nonlocal blocks
        blocks += 1
        on_block(content)

    device.client.on_block = count  # type: ignore[method-assign]
    assert await device.client.send_many([NtfRequest(PING())] * 14) == [PONG()] * 14
    assert blocks == 1
