"""Each module of the Redis room and of the store can be imported first, and brings no other room along."""

import subprocess
import sys
from pathlib import Path

import pytest

import weir.redis
import weir.router.store


def _modules(package: Path, name: str) -> list[str]:
    return [f"{name}.{file.stem}" for file in sorted(package.glob("*.py")) if file.stem != "__init__"]


REDIS = _modules(Path(weir.redis.__path__[0]), "weir.redis")
STORE = _modules(Path(weir.router.store.__path__[0]), "weir.router.store")
_NOT_IN_REDIS = ("weir.router", "weir.notifier", "weir.wire", "weir.client", "weir.transport", "weir.cli")


def _imported_with(module: str) -> list[str]:
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('weir.')))"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("module", REDIS)
def test_redis_modules_import_in_any_order(module: str) -> None:
    assert not [name for name in _imported_with(module) if name.startswith(_NOT_IN_REDIS)]


@pytest.mark.parametrize("module", STORE)
def test_the_store_needs_no_other_part_of_the_router(module: str) -> None:
    routers = [name for name in _imported_with(module) if name.startswith("weir.router.")]
    assert not [name for name in routers if not (name + ".").startswith("weir.router.store.")]
