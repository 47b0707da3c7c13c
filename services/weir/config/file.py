"""Reads one configuration file, TOML or the reference server's ini, into raw settings with their file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Problem:
    """A mistake in a configuration. `line` is 0 if the mistake is in no single line."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True)
class Raw:
    """One setting as written. `shown_section` and `shown_key` are the names in the file, if those differ from ours."""

    section: str
    key: str
    value: object
    file: str
    line: int
    shown_section: str = ""
    shown_key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown_section", self.shown_section or self.section)
        object.__setattr__(self, "shown_key", self.shown_key or self.key)

    def problem(self, text: str) -> Problem:
        return Problem(self.file, self.line, text)


@dataclass(frozen=True)
class Renamed:
    """Our name for a key of the reference server's ini. `unit` is the unit that a bare number has in the ini."""

    section: str
    key: str
    unit: str = ""


@dataclass(frozen=True)
class IniNames:
    """How the keys of a reference server's ini file map to a program's own settings.

    Keys of the same section and name need no entry. `left_out_because` returns the reason why the program has no use
    for a setting, or None if the program has one.
    """

    renamed: Mapping[tuple[str, str], Renamed]
    left_out_because: Callable[[Raw], str | None]


def read_config_file(path: Path, ini: IniNames, problems: list[Problem]) -> list[Raw]:
    """Read a file by its suffix: `.ini`, or else TOML. Problems are appended to `problems`."""
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        problems.append(Problem(str(path), 0, f"cannot be read: {error.strerror}"))
        return []
    except UnicodeDecodeError:
        problems.append(Problem(str(path), 0, "is not UTF-8 text"))
        return []
    if path.suffix == ".ini":
        known, _ = read_ini(str(path), text, ini, problems)
        return known
    return _read_toml(str(path), text, problems)


def _read_toml(file: str, text: str, problems: list[Problem]) -> list[Raw]:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        problems.append(Problem(file, line, re.sub(r" \(at .*\)$", "", str(error)).lower()))
        return []
    lines = _toml_lines(text)
    raws = []
    for section, content in tree.items():
        if not isinstance(content, dict):
            problems.append(Problem(file, lines.get((section, ""), 0), f"{section} is outside of a [section]"))
            continue
        if not content:
            raws.append(Raw(section, "", "", file, lines.get((section, ""), 0)))
        for key, value in content.items():
            raws.append(Raw(section, key, value, file, lines.get((section, key), 0)))
    return raws


def _toml_lines(text: str) -> dict[tuple[str, str], int]:
    """Find the line of each (section, key). tomllib does not report lines, so scan the text for headers and keys."""
    lines: dict[tuple[str, str], int] = {}
    prefix: list[str] = []
    for at, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]", line):
            prefix = [part.strip().strip("\"'") for part in header[1].split(".")]
            path = prefix
        elif key := re.match(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=", line):
            path = prefix + [part.strip().strip("\"'") for part in key[1].split(".")]
        else:
            continue
        lines.setdefault((path[0], path[1] if len(path) > 1 else ""), at)
    return lines


def read_ini(file: str, text: str, ini: IniNames, problems: list[Problem]) -> tuple[list[Raw], list[Raw]]:
    """Return the settings under our names, and the settings of the reference server that have no use here.

    The file may also have sections of our own. `#` and `;` start a comment line, `=` and `:` both assign.
    """
    known: list[Raw] = []
    left_out: list[Raw] = []
    shown_section = section = ""
    for at, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if header := re.fullmatch(r"\[([^\]]+)\]", line):
            shown_section, section = header[1], header[1].lower()
            continue
        assignment = re.match(r"([A-Za-z0-9_]+)\s*[=:]\s*(.*)$", line)
        if assignment is None or not section:
            problems.append(Problem(file, at, "expected [SECTION] or key = value"))
            continue
        raw = Raw(section, assignment[1], assignment[2], file, at, shown_section)
        renamed = ini.renamed.get((section, raw.key))
        if ini.left_out_because(raw) is not None:
            left_out.append(raw)
        else:
            known.append(raw if renamed is None else _rename(renamed, raw))
    return known, left_out


def _rename(renamed: Renamed, raw: Raw) -> Raw:
    value: Any = raw.value
    if renamed.unit and str(value).strip().isdigit():
        value = f"{value}{renamed.unit}"
    return Raw(renamed.section, renamed.key, value, raw.file, raw.line, raw.shown_section, raw.key)
