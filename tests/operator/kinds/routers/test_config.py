"""The common part of all routers' configuration files."""

from __future__ import annotations

from weir_operator.kinds.routers.config import config_hash


def test_the_hash_follows_the_text() -> None:
    assert config_hash("a") == config_hash("a") != config_hash("b")
