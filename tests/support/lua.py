"""What tests ask about script files: their headers, the constants in includes, unused includes."""

import ast
import re
from pathlib import Path
from typing import Any

from weir.redis.scripts import Folders, names, read

_REPLACED = {"poke_shard", "settled"}  # the loader takes these by itself


def check_header(folders: Folders, name: str) -> None:
    """The header says the purpose, keys, arguments, answers, and what a retry answers."""
    text = read(folders, name)
    header = text[: re.search(r"^[^-]", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    assert re.search(r"^-- [A-Z]", header)
    for part in ("-- KEYS ", "-- ARGV ", "-- Answers ", "'1' on a retry"):
        assert part in header, f"{name} lacks {part}"


def constants(folders: Folders, name: str) -> dict[str, Any]:
    """The `local A, B = 1, 2` of a script, e.g. "rotate", or an include, e.g. "include/status"."""
    found: dict[str, Any] = {}
    text = read(folders, name)
    for left, right in re.findall(r"^local ([A-Z_, ]+) = ([^-\n]+)", text, re.MULTILINE):
        found |= zip(left.split(", "), map(ast.literal_eval, right.strip().split(", ")), strict=True)
    return found


def unused_includes(folders: Folders) -> set[str]:
    """The includes of the first folder that no script or include of these folders names."""
    texts = [path.read_text() for folder in folders for path in Path(str(folder)).rglob("*.lua")]
    used = set(re.findall(r"-- include: (\w+)", "".join(texts)))
    return {path.stem for path in Path(str(folders[0])).glob("include/*.lua")} - used - _REPLACED


def own_names(folders: Folders) -> tuple[str, ...]:
    """The scripts of the first folder: those of the program itself."""
    return names(folders[:1])
