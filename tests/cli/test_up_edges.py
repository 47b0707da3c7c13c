"""The edge processes of `weir up`: restarts."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from weir.cli import up_edges
from weir.cli.errors import Fail
from weir.cli.up_edges import EdgeProcess


async def test_an_edge_is_restarted_until_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without a free process or without memory refuses the start with OSError."""

    async def wait() -> int:
        return 1

    edge = EdgeProcess(0, Path("weir.toml"), {})
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
