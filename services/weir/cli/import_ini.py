"""`weir import`: a reference server's smp-server.ini becomes weir.toml, with a word on every setting."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.crypto.pem import write_file
from weir.router.config import ConfigError, sections, settings_of, settle
from weir.router.config_file import Problem, Raw, left_out_because, read_ini
from weir.router.config_kinds import BOOL, DURATION, PORT, PORTS, SIZE


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir import",
        "Reads the reference server's smp-server.ini and writes the same settings as TOML. On standard error it says\n"
        "which settings were taken over, under which name, and which were not, and why. Queues and messages are not\n"
        "part of the file: clients move their queues to the new address.",
        """
weir import /etc/opt/simplex/smp-server.ini --output weir.toml
weir import smp-server.ini > weir.toml && weir smp config check weir.toml
""",
    )
    p.add_argument("file", type=Path, metavar="smp-server.ini")
    p.add_argument("--output", type=Path, metavar="FILE", help="where the TOML goes (standard output)")
    options = p.parse_args(argv)
    try:
        text = options.file.read_text("utf-8")
    except OSError as error:
        raise os_error(options.file, error) from None
    except UnicodeDecodeError:
        raise Fail(f"{options.file}: not a text file") from None
    problems: list[Problem] = []
    taken, left_out = read_ini(str(options.file), text, problems)
    known = [raw for raw in taken if _setting(raw) is not None]
    try:
        settle(known, problems, options.file)
    except ConfigError as error:
        raise Fail(str(error)) from None
    toml = "".join(line + "\n" for line in _lines(known))
    if options.output is None:
        print(toml, end="")
    else:
        try:
            write_file(options.output, toml.encode(), 0o600)  # it may have passwords in it
        except OSError as error:
            raise os_error(options.output, error) from None
    for raw in taken:
        if raw in known:
            report = f"taken over: [{raw.shown_section}] {raw.shown_key} → [{raw.section}] {raw.key}"
        else:
            report = _not_taken_over(raw, "unknown here")
        print(report, file=sys.stderr)
    for raw in left_out:
        print(_not_taken_over(raw, left_out_because(raw) or ""), file=sys.stderr)
    return 0


def _setting(raw: Raw) -> Field[Any] | None:
    section = dict(sections()).get(raw.section)
    return None if section is None else next((f for f in settings_of(section) if f.name == raw.key), None)


def _not_taken_over(raw: Raw, why: str) -> str:
    return f"not taken over: [{raw.shown_section}] {raw.shown_key} (line {raw.line}): {why}"


def _lines(known: list[Raw]) -> Iterator[str]:
    for name, _ in sections():
        values = {}  # a key that is written twice means its last value
        for raw in known:
            setting = _setting(raw)
            if raw.section == name and setting is not None:
                values[raw.key] = _toml(setting, setting.metadata["kind"].read(raw.value))
        if values:
            yield f"[{name}]"
            yield from (f"{key} = {value}" for key, value in values.items())
            yield ""


def _toml(setting: Field[Any], value: Any) -> str:
    kind = setting.metadata["kind"]
    if kind is BOOL:
        return "true" if value else "false"
    if kind is PORTS:
        return f"[{', '.join(map(str, value))}]"
    if isinstance(value, tuple):
        return f"[{', '.join(_text(str(item)) for item in value)}]"
    if kind in (DURATION, SIZE):
        return _text(kind.show(value))
    if kind is PORT or isinstance(value, int | float):
        return str(value)
    return _text(str(value))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
