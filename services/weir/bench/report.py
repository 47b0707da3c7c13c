"""Prints results as a table for people, and writes them as JSON for programs. docs/bench.md lists the JSON keys."""

import json
import os
import platform
import ssl
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from weir.bench.target import commit

_UNITS = (("_per_cpu_s", "/CPU-s"), ("_per_s", "/s"), ("_ms", "ms"), ("_us", "µs"), ("_kib", "KiB"), ("_mib", "MiB"))


def keys(result: Any) -> dict[str, Any]:
    """Return the fields of a result, without those that could not be measured."""
    assert is_dataclass(result) and not isinstance(result, type)
    return {name: value for name, value in asdict(result).items() if value not in (None, "", ())}


def table(title: str, values: dict[str, Any]) -> str:
    width = max(map(len, values), default=0)
    lines = [title, *(f"  {name:{width}}  {_text(name, value)}" for name, value in values.items())]
    return "\n".join(lines)


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        number = f"{value:,.3f}" if abs(value) < 10 else f"{value:,.1f}"
        return f"{number} {_unit(name)}".rstrip()
    if isinstance(value, list | tuple):
        return "  ".join(_text("", one) for one in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _unit(name: str) -> str:
    return next((unit for part, unit in _UNITS if part in name), "")


def environment() -> dict[str, Any]:
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "cores": os.cpu_count(),
    }


def write_json(path: Path, bench: str, values: dict[str, Any]) -> None:
    path.write_text(json.dumps({"bench": bench, **environment(), **values}, indent=1) + "\n")
