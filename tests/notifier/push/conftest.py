import pytest

from weir.bench.standins.authority import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
