"""A well-behaved client is served beside every kind of hostile client. `weir bench fairness` measures how fast."""

from collections.abc import AsyncIterator

import pytest

from tests.chaos.processes import Deployment, EdgeProcess
from tests.support.redis import discard, start_server
from weir.bench.fairness import time_cycles
from weir.bench.hostile import KINDS, hostile_client
from weir.bench.target import Target

CYCLES = 40


@pytest.fixture
async def edge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EdgeProcess]:
    server = start_server()
    process = EdgeProcess(
        Deployment(tmp_path_factory.mktemp("edge"), server.url, {"WEIR_PROXY_ALLOW_LOCAL_RELAYS": "on"})
    )
    await process.start()
    yield process
    process.kill()
    discard(server)


@pytest.mark.parametrize("kind", KINDS)
async def test_others_are_served(edge: EdgeProcess, kind: str) -> None:
    """The hostile client works throughout: the router does not get rid of it."""
    target = Target(edge.address)
    with hostile_client(kind, target):
        assert len(await time_cycles(target, CYCLES)) == CYCLES
