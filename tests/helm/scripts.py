"""The repository's scripts as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from tests.helm.charts import REPO


def _load(name: str) -> ModuleType:
    if str(REPO / "scripts") not in sys.path:
        sys.path.insert(0, str(REPO / "scripts"))
    spec = importlib.util.spec_from_file_location(f"weir_scripts_{name}", REPO / f"scripts/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


chart = _load("chart")
dashboards = _load("dashboards")
