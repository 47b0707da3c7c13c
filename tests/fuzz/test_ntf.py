"""Mutated commands against a notification router for a moment."""

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fuzz.ntf import Broken, run
from tests.notifier.router import Router, notifier_config
from tests.support.redis import discard, start_server
from weir.crypto.identity import init_identity
from weir.notifier.commands.tchk import TchkHandler
from weir.redis.embedded import Embedded


@pytest.fixture(scope="module")
def redis() -> Iterator[Embedded]:
    server = start_server()
    yield server
    discard(server)


@pytest.fixture
async def router(redis: Embedded, tmp_path: Path) -> AsyncIterator[Router]:
    init_identity(tmp_path / "identity", "127.0.0.1")
    config = notifier_config(redis.url, tmp_path / "identity", tmp_path)
    prefix = f"t{os.urandom(4).hex()}"  # a deployment of its own: the keys differ from test to test
    router = await Router.start(replace(config, redis=replace(config.redis, prefix=prefix)), tmp_path)
    yield router
    await router.close()


async def test_mutated_commands_of_all_versions(router: Router) -> None:
    counts = await run(router, seed=1, rounds=20)
    expected = ("OK", "PONG", "TKN", "ERR AUTH", "ERR SYNTAX", "ERR HAS_AUTH", "ERR NO_AUTH", "ERR BLOCK")
    assert all(counts[answer] for answer in expected), counts


async def test_a_command_that_fails_is_noticed(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("a fault of the handler")

    monkeypatch.setattr(TchkHandler, "execute", fail)
    with pytest.raises(Broken, match=r"ERR INTERNAL|the router logged|has changed"):
        await run(router, seed=1, rounds=5)
