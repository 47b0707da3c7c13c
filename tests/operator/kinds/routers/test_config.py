"""The common part of all routers' configuration files."""

from __future__ import annotations

from tests.operator.world import router_of
from weir.telemetry.rollups.record import is_name
from weir_operator.kinds.routers.config import config_hash, shared_sections


def test_the_hash_follows_the_text() -> None:
    assert config_hash("a") == config_hash("a") != config_hash("b")


def test_a_long_name_is_cut_for_rollups() -> None:
    """Kubernetes allows longer names than a rollup."""
    name = "a" * 60 + ".example"
    sections = shared_sections(router_of(name=name), [], 443, 5223)
    assert sections["rollups"] == {"router": name[:63]}
    assert is_name(name[:63])
