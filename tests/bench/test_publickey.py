import pytest

from tests.support import crypto_mb
from weir.bench.publickey import run_public_keys, x25519_us


@pytest.mark.parametrize("build", ["off", "forky"])
def test_public_keys(build: str) -> None:
    path = build if build == "off" else crypto_mb.builds().get(build)
    if path is None:
        pytest.skip("scripts/servers.sh has fetched no crypto_mb")
    with crypto_mb.using(path):
        result = run_public_keys()
    assert result.lanes == (8 if build != "off" and crypto_mb.processor_can() else 1)
    assert min(result.x25519_us, result.dh_us, result.dh_many_us, result.ed25519_us, result.ed25519_many_us) > 0


def test_the_unit() -> None:
    assert 1 < x25519_us() < 100_000
