"""Mutated commands against real edges for a moment; `make fuzz-edge` does it for as long as one likes."""

import pytest

from tests.fuzz import edge, session
from tests.fuzz.edge import run
from tests.fuzz.session import Broken
from weir.router.commands.ping import PingHandler
from weir.router.commands.que import QueHandler


async def test_mutated_commands_of_all_versions() -> None:
    counts = await run(20, seed=1, rounds=24)
    assert counts["rounds"] > 0 and counts["transmissions"] > 100
    assert counts["OK"] and counts["IDS"] and counts["ERR AUTH"] and counts["ERR SYNTAX"]


async def test_a_command_without_an_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ANSWERS", 1.0)
    monkeypatch.setattr(PingHandler, "begin", lambda self: self.origin.detach(self))
    with pytest.raises(Broken, match=r"transmissions without an answer\n  version .*, seed 1:\d"):
        await run(20, seed=1)


async def test_a_command_that_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("a fault of the handler")

    monkeypatch.setattr(session, "ANSWERS", 1.0)
    monkeypatch.setattr(QueHandler, "work", fail)
    with pytest.raises(Broken, match=r"ERR INTERNAL|an edge logged"):
        await run(20, seed=1)


def test_a_run_says_how_to_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert edge.main(["--seconds", "0.5", "--seed", "7", "--round", "3"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "seed 7" and "1 rounds" in second
