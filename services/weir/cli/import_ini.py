"""`weir import`: a reference server's smp-server.ini becomes weir.toml, with a word on every setting."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any

from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.router.config import ConfigError, load, sections, settings_of
from weir.router.config_file import INI_LEFT_OUT, Problem, Raw, read_ini
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
    toml, report = convert(taken, left_out, problems)
    if problems:
        raise Fail(str(ConfigError(problems)))
    if options.output is None:
        print(toml, end="")
    else:
        try:
            options.output.write_text(toml)
            load(options.output, {})
        except OSError as error:
            raise os_error(options.output, error) from None
    print("\n".join(report), file=sys.stderr)
    return 0


def convert(taken: list[Raw], left_out: list[Raw], problems: list[Problem]) -> tuple[str, list[str]]:
    """(TOML, report); what does not fit is added to `problems`."""
    schema = {name: {f.name: f for f in settings_of(cls)} for name, cls in sections()}
    values: dict[str, dict[str, str]] = {}
    report = []
    for raw in taken:
        setting = schema.get(raw.section, {}).get(raw.key)
        if setting is None:
            report.append(f"not taken over: [{raw.shown_section}] {raw.shown_key} (line {raw.line}): unknown here")
            continue
        try:
            shown = _toml(setting, setting.metadata["kind"].read(raw.value))
        except ValueError as error:
            problems.append(raw.problem(f"{raw.shown_key}: {error}"))
            continue
        values.setdefault(raw.section, {})[raw.key] = shown
        report.append(f"taken over: [{raw.shown_section}] {raw.shown_key} → [{raw.section}] {raw.key}")
    for raw in left_out:
        why = INI_LEFT_OUT[raw.section, raw.key]
        report.append(f"not taken over: [{raw.shown_section}] {raw.shown_key} (line {raw.line}): {why}")
    return "".join(line + "\n" for line in _lines(values)), report


def _lines(values: dict[str, dict[str, str]]) -> Iterator[str]:
    for name, _ in sections():
        if name in values:
            yield f"[{name}]"
            yield from (f"{key} = {value}" for key, value in values[name].items())
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
