from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.transport.peer import Router, start_router
from weir.crypto.identity import init_identity


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("transport") / "identity"
    init_identity(directory, "localhost", "ed25519")
    return directory


@pytest.fixture(scope="session")
def identity_ed448(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("transport") / "identity-ed448"
    init_identity(directory, "localhost", "ed448")
    return directory


@pytest.fixture
async def start(identity: Path) -> AsyncIterator[Callable[..., Awaitable[Router]]]:
    """Start routers that end with the test."""
    routers = []

    async def start_one(directory: Path | None = None, **limits: object) -> Router:
        routers.append(await start_router(directory or identity, **limits))
        return routers[-1]

    yield start_one
    for router in routers:
        await router.listener.close()


@pytest.fixture
async def router(start: Callable[..., Awaitable[Router]]) -> Router:
    return await start()
