from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.notifier.router import Device, Router, notifier_config
from tests.support.redis import discard, start_server
from weir.crypto.identity import init_identity
from weir.notifier.config import NotifierConfig
from weir.redis.embedded import Embedded


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("notifier") / "identity"
    init_identity(directory, "localhost", "ed25519")
    return directory


@pytest.fixture(scope="session")
def redis() -> Iterator[Embedded]:
    """One Redis for the whole package: every test has tokens of its own."""
    server = start_server()
    yield server
    discard(server)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the deployment's keys."""
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def config(redis: Embedded, identity: Path, keys: Path) -> NotifierConfig:
    return notifier_config(redis.url, identity, keys)


@pytest.fixture
async def router(config: NotifierConfig, keys: Path) -> AsyncIterator[Router]:
    router = await Router.start(config, keys)
    yield router
    await router.close()


@pytest.fixture
async def device(router: Router) -> Device:
    return await router.device()
