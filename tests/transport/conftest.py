from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest

from tests.transport.peer import NTF_DIALECT, SMP_DIALECT, Dialect, Router, start_router
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


@pytest.fixture(params=[SMP_DIALECT, NTF_DIALECT], ids=["smp", "ntf"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    """For what both protocols do alike."""
    return cast(Dialect, request.param)


@pytest.fixture
async def router(start: Callable[..., Awaitable[Router]]) -> Router:
    return await start()


@pytest.fixture
async def either(start: Callable[..., Awaitable[Router]], dialect: Dialect) -> Router:
    """A router of SMP, then one of NTF."""
    return await start(dialect=dialect)
