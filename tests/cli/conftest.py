from collections.abc import Iterator

import pytest

from tests.support.up import Up, weir_up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One router for the tests of a file."""
    with weir_up(tmp_path_factory.mktemp("up") / "home") as running:
        yield running
