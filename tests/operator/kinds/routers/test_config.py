"""What the configuration files of all routers share."""

from __future__ import annotations

from weir_operator.kinds.routers.config import config_hash


def test_the_hash_follows_the_text() -> None:
    assert config_hash("a") == config_hash("a") != config_hash("b")
