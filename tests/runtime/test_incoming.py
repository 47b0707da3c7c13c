"""Blocks begin in their order, and a hold keeps those behind a command from beginning until it is released once."""

import asyncio
import gc
import logging
from dataclasses import dataclass, field
from typing import Any

import pytest

from weir.runtime.incoming import Block, Incoming
from weir.runtime.turns import Share, Turns


@dataclass
class Client:
    """Blocks are texts. A block of words separated by commas is one of several commands, begun one per turn."""

    begun: list[bytes] = field(default_factory=list)
    reading: bool = True
    full: bool = False
    charged_to: Share[Any] | None = None
    incoming: Incoming = field(init=False)

    def __post_init__(self) -> None:
        turns = Turns(asyncio.get_running_loop())
        turns.heard(object())  # the connection is not alone
        self.incoming = Incoming(self, turns, Share(turns, lambda: None), self, self._begin)

    def _begin(self, block: bytes) -> Block | None:
        words = block.split(b",")
        if len(words) > 1:
            return Several(self, words)
        self.begun.append(block)
        return None

    def answered(self, count: int = 1) -> None:
        for _ in range(count):
            self.incoming.block_answered()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


@dataclass
class Several:
    client: Client
    words: list[bytes]
    waits: bool = False

    def begin_more(self) -> bool:
        self.client.begun.append(self.words.pop(0))
        return not self.words


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0.001)


async def test_a_block_of_an_idle_client_begins_at_once() -> None:
    client = Client()
    client.incoming.on_blocks([b"a"])
    assert client.begun == [b"a"] and not client.incoming.idle
    client.answered()
    assert client.incoming.idle


async def test_two_blocks_are_in_progress_and_the_others_wait_unread() -> None:
    client = Client()
    client.incoming.on_blocks([b"a", b"b", b"c"])
    await turns()
    assert client.begun == [b"a", b"b"] and not client.reading
    client.answered()
    await turns()
    assert client.begun == [b"a", b"b", b"c"] and client.reading


async def test_a_block_of_several_commands_holds_back_the_next() -> None:
    client = Client()
    client.incoming.on_blocks([b"a,b,c", b"d"])
    await turns()
    assert client.begun == [b"a", b"b", b"c", b"d"]


async def test_blocks_wait_for_every_hold() -> None:
    client = Client()
    one, two = client.incoming.hold(), client.incoming.hold()
    client.incoming.on_blocks([b"a"])
    for hold in (one, two):
        await turns()
        assert client.begun == []
        hold.release()
    await turns()
    assert client.begun == [b"a"]


async def test_a_full_client_begins_nothing() -> None:
    client = Client(full=True)
    client.incoming.on_blocks([b"a"])
    await turns()
    assert client.begun == []
    client.full = False
    client.incoming.schedule()
    await turns()
    assert client.begun == [b"a"]


async def test_a_second_release_is_refused() -> None:
    """A second release would release the hold of another command."""
    client = Client()
    hold, other = client.incoming.hold(), client.incoming.hold()
    hold.release()
    with pytest.raises(RuntimeError):
        hold.release()
    with pytest.raises(RuntimeError), hold:
        pass
    client.incoming.on_blocks([b"a"])
    await turns()
    assert client.begun == [], "the other hold is still there"
    other.release()
    await turns()
    assert client.begun == [b"a"]


async def test_a_dropped_hold_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that forgets its command is a bug: the log says so, and the client is not stuck for ever."""
    client = Client()
    hold = client.incoming.hold()
    client.incoming.on_blocks([b"a"])
    with caplog.at_level(logging.ERROR):
        del hold
        gc.collect()
    assert [record.getMessage() for record in caplog.records] == [
        "a command was dropped without an answer; the commands behind it continue"
    ]
    await turns()
    assert client.begun == [b"a"]


async def test_a_hold_of_a_client_that_has_disconnected(caplog: pytest.LogCaptureFixture) -> None:
    """A command of a disconnected client may be dropped: nobody waits for the answer."""
    client = Client()
    hold, kept = client.incoming.hold(), client.incoming.hold()
    client.incoming.on_blocks([b"a"])
    client.incoming.close()
    del hold
    kept.release()
    await turns()
    assert not caplog.records and client.begun == []


async def test_a_hold_is_released_when_its_work_fails() -> None:
    client = Client()
    with pytest.raises(ValueError), client.incoming.hold():
        assert client.incoming.holds == 1
        raise ValueError
    assert client.incoming.holds == 0


async def test_a_client_that_leaves_is_read_no_more() -> None:
    client = Client()
    client.incoming.on_blocks([b"a", b"b"])
    client.incoming.stop_reading()
    await turns()
    client.answered(2)
    await turns()
    assert client.incoming.idle and not client.reading
