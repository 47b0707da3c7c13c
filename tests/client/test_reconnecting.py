"""Pauses between attempts, and connections that end at once. What an agent does on top is in test_agent.py."""

import asyncio

import pytest

from tests.client.scripted import Script
from weir.client.agent import AgentConfig, SmpAgent
from weir.client.reconnecting import Pauses
from weir.crypto.keys import generate


def test_pauses_double_up_to_the_longest_and_differ() -> None:
    bounds = [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    rounds = []
    for _ in range(50):
        pauses = Pauses(1.0, 10.0)
        rounds.append([pauses.next() for _ in bounds])
    for number, bound in enumerate(bounds):
        drawn = [one[number] for one in rounds]
        assert all(bound / 2 <= pause <= bound for pause in drawn)
        assert len(set(drawn)) > 40
    pauses.longest = 2.0
    assert pauses.next() <= 2.0
    pauses.reset()
    assert pauses.next() <= 1.0


async def test_a_router_that_ends_every_connection_at_once(script: Script, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses grow: such a router is not asked in a loop. `hurry` ends a pause."""
    script.answer = lambda session, _: session.connection.close()
    paused: asyncio.Queue[float] = asyncio.Queue()
    draw = Pauses.next

    def drawn(self: Pauses) -> float:
        paused.put_nowait(pause := draw(self))
        return pause

    monkeypatch.setattr(Pauses, "next", drawn)
    async with SmpAgent(script.address, lambda _: None, config=AgentConfig(first_retry=60, max_retry=600)) as agent:
        agent.subscribe([(bytes(24), generate())])
        async with asyncio.timeout(10):
            assert 30 <= await paused.get() <= 60
            assert len(script.sessions) == 1
            agent._hurry.set()
            assert 60 <= await paused.get() <= 120
            assert len(script.sessions) == 2
            agent.hurry()
            assert 30 <= await paused.get() <= 60
