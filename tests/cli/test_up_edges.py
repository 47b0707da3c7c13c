"""The edge processes of `weir up`: restarts."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from weir.cli import up_edges
from weir.cli.errors import Fail
from weir.cli.programs import SMP
from weir.cli.up_edges import EdgeProcess


async def test_an_edge_is_restarted_until_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without a free process or without memory refuses the start with OSError."""

    async def wait() -> int:
        return 1

    edge = EdgeProcess(SMP, 0, Path("weir.toml"), {})
    edge._process = SimpleNamespace(wait=wait)  # type: ignore[assignment]
    refusals = [Fail("not ready"), OSError("Resource temporarily unavailable")]

    async def start() -> None:
        if refusals:
            raise refusals.pop()
        edge._process = None

    monkeypatch.setattr(edge, "start", start)
    monkeypatch.setattr(up_edges, "_PAUSE_FIRST", 0.0)
    warnings: list[str] = []
    restarts: list[bool] = []
    await edge.watch(warnings.append, lambda: restarts.append(True))
    assert warnings == [
        "edge 0 ended with code 1; restarting it",
        "edge 0 does not start: Resource temporarily unavailable",
        "edge 0 does not start: not ready",
    ]
    assert restarts == [True]


async def test_a_file_that_cannot_be_written_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full when run.json is written: an edge that crashes later is restarted all the same."""
    crashes = [1, 2]

    async def wait() -> int:
        return crashes.pop(0)

    edge = EdgeProcess(SMP, 0, Path("weir.toml"), {})
    edge._process = SimpleNamespace(wait=wait)  # type: ignore[assignment]

    async def start() -> None:
        if not crashes:
            edge._process = None

    def on_restart() -> None:
        raise Fail("run.json: no space left on device")

    monkeypatch.setattr(edge, "start", start)
    monkeypatch.setattr(up_edges, "_PAUSE_FIRST", 0.0)
    warnings: list[str] = []
    await edge.watch(warnings.append, on_restart)
    assert warnings == [
        "edge 0 ended with code 1; restarting it",
        "run.json: no space left on device",
        "edge 0 ended with code 2; restarting it",
        "run.json: no space left on device",
    ]
