"""Writes values as TOML.

No library is used: tomli-w writes no comments and spreads every array over several lines, and tomlkit is a complete
round-trip parser, of which this module would need one function.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

TomlValue = bool | int | float | str | Iterable["TomlValue"]


def toml_value(value: TomlValue) -> str:
    """Write one value: a boolean, a number, text, or a list of them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str):
        # A JSON string is a TOML basic string, except that TOML also wants DEL escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(toml_value(item) for item in value)}]"


def toml_section(name: str, values: Mapping[str, TomlValue]) -> Iterator[str]:
    """Write the lines of one section, with an empty line at its end."""
    yield f"[{name}]"
    yield from (f"{key} = {toml_value(value)}" for key, value in values.items())
    yield ""
