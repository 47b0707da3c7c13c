"""Holds: a command keeps the blocks behind it from beginning, and lets them begin exactly once."""

import asyncio
import gc
import logging

import pytest

from tests.router.fleet import Fleet, Peer
from weir.crypto.block import pad_block
from weir.router.session.session import Session
from weir.wire.versions import VersionRange

PING = pad_block(b"\1\0\7\0\0\0PING")
UNENCRYPTED = VersionRange(7, 10)


async def connect(fleet: Fleet) -> tuple[Peer, Session]:
    """A connection's two sides."""
    peer = await fleet.client(0, versions=UNENCRYPTED)
    await peer.smp.ping()
    clients = fleet[0].router.clients
    return peer, clients[max(clients)]


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_blocks_wait_for_every_hold(fleet: Fleet) -> None:
    _, client = await connect(fleet)
    one, two = client.incoming.hold(), client.incoming.hold()
    client.on_blocks([PING])
    for hold in (one, two):
        await turns()
        assert len(client.incoming.blocks) == 1
        hold.release()
    await turns()
    assert not client.incoming.blocks and client.incoming.idle


async def test_a_second_release_is_refused(fleet: Fleet) -> None:
    """A second release would release the hold of another command."""
    _, client = await connect(fleet)
    hold, other = client.incoming.hold(), client.incoming.hold()
    hold.release()
    with pytest.raises(RuntimeError):
        hold.release()
    with pytest.raises(RuntimeError), hold:
        pass
    client.on_blocks([PING])
    await turns()
    assert len(client.incoming.blocks) == 1, "the other hold is still there"
    other.release()
    await turns()
    assert client.incoming.idle


async def test_a_dropped_hold_is_noticed(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """A handler that forgets its command is a bug: the log says so, and the client is not stuck for ever."""
    _, client = await connect(fleet)
    hold = client.incoming.hold()
    client.on_blocks([PING])
    with caplog.at_level(logging.ERROR):
        del hold
        gc.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "a command was dropped without an answer; the commands behind it continue"
    ]
    await turns()
    assert client.incoming.idle


async def test_a_hold_of_a_client_that_has_disconnected(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """A command of a disconnected client may be dropped: nobody waits for the answer."""
    _, client = await connect(fleet)
    hold, kept = client.incoming.hold(), client.incoming.hold()
    client.conn.abort()
    async with asyncio.timeout(5):
        while not client.closed:
            await asyncio.sleep(0.01)
    del hold
    kept.release()
    assert not caplog.records


async def test_a_hold_is_released_when_its_work_fails(fleet: Fleet) -> None:
    _, client = await connect(fleet)
    with pytest.raises(ValueError), client.incoming.hold():
        assert client.incoming.holds == 1
        raise ValueError
    assert client.incoming.holds == 0
