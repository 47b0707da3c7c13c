"""The subscription to pokes starts again after any failure."""

import asyncio
from typing import Any

import pytest

from weir.runtime import inbox
from weir.runtime.inbox import PokeListener


class Topology:
    """Fails in two ways; then the test has seen enough."""

    def __init__(self) -> None:
        self.tries = 0
        self.third = asyncio.Event()
        self.scripts = self
        self.sharded = False

    async def master(self, partition: int) -> Any:
        self.tries += 1
        if self.tries == 1:
            raise ConnectionRefusedError
        if self.tries == 2:
            raise KeyError("an id of a client")
        self.third.set()
        await asyncio.Event().wait()

    def reconcile(self) -> None: ...


async def test_it_starts_again_after_a_mistake_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(inbox, "_RETRY_DELAY", 0.001)
    topology: Any = Topology()
    listener = PokeListener(topology, b"channel", [], lambda _: None, lambda: None, limit=0.05)
    with pytest.raises(TimeoutError):
        await listener.start()
    await asyncio.wait_for(topology.third.wait(), 5)
    await listener.close()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        "the subscription to pokes failed and starts again (KeyError in test_poke_listener.py, line "
    )
