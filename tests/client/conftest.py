from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.client.scripted import Script, StartScript, start_script
from weir.crypto.identity import init_identity


@pytest.fixture(scope="session")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("client") / "identity"
    init_identity(directory, "localhost", "ed25519")
    return directory


@pytest.fixture
async def start(identity: Path) -> AsyncIterator[StartScript]:
    scripts = []

    async def start_one(port: int = 0) -> Script:
        scripts.append(await start_script(identity, port))
        return scripts[-1]

    yield start_one
    for script in scripts:
        await script.listener.close()


@pytest.fixture
async def script(start: StartScript) -> Script:
    return await start()
