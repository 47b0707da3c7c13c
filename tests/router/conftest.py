from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.router.fleet import Fleet, router_config
from tests.router.service import credentials
from tests.support.redis import discard, start_server
from weir.crypto.identity import init_identity
from weir.redis.embedded import Embedded
from weir.router.config import RouterConfig
from weir.transport.smp import ServiceCredentials


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("router") / "identity"
    init_identity(directory, "localhost", "ed25519")
    return directory


@pytest.fixture(scope="session")
def redis() -> Iterator[Embedded]:
    """One Redis for the whole package: every test has queues of its own."""
    server = start_server()
    yield server
    discard(server)


@pytest.fixture(scope="session")
def placement(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("placement")


@pytest.fixture
def config(redis: Embedded, identity: Path, placement: Path) -> RouterConfig:
    return router_config(redis.url, identity, placement)


@pytest.fixture
async def fleet(config: RouterConfig) -> AsyncIterator[Fleet]:
    """Two edges."""
    fleet = Fleet(config)
    await fleet.add()
    await fleet.add()
    yield fleet
    await fleet.close()


@pytest.fixture
async def service(fleet: Fleet) -> AsyncIterator[ServiceCredentials]:
    yield credentials()


@pytest.fixture
async def relay(config: RouterConfig) -> AsyncIterator[Fleet]:
    """Another router (the same Redis does: a proxy knows nothing of a relay but its address)."""
    fleet = Fleet(config)
    await fleet.add()
    yield fleet
    await fleet.close()
