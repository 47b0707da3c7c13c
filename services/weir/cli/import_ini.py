"""`weir import`: converts a reference server's ini file to weir.toml, and reports on every setting."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.cli.programs import NTF, PROGRAMS, SMP, Program
from weir.config.file import Problem, Raw, read_ini
from weir.config.schema import ConfigError, Schema
from weir.config.toml import toml_section
from weir.crypto.pem import write_file


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir import",
        "Reads the reference server's smp-server.ini or ntf-server.ini and writes the same settings as TOML. On\n"
        "standard error it lists the settings that it has taken over, with their new names, and those that it has\n"
        "not, with the reason. Queues, messages and tokens are not part of the file: clients move their queues to the\n"
        "new address, and devices register again.",
        """
weir import /etc/opt/simplex/smp-server.ini --output weir.toml
weir import smp-server.ini > weir.toml && weir smp config check weir.toml
weir import /etc/opt/simplex-notifications/ntf-server.ini --output weir.toml
""",
    )
    p.add_argument("file", type=Path, metavar="FILE", help="smp-server.ini or ntf-server.ini")
    p.add_argument("--router", choices=tuple(PROGRAMS), help="the router that the file is for (by its sections)")
    p.add_argument("--output", type=Path, metavar="FILE", help="file to write (standard output)")
    options = p.parse_args(argv)
    try:
        text = options.file.read_text("utf-8")
    except OSError as error:
        raise os_error(options.file, error) from None
    except UnicodeDecodeError:
        raise Fail(f"{options.file}: not a text file") from None
    schema = (PROGRAMS[options.router] if options.router else _program_of(text)).schema
    problems: list[Problem] = []
    taken, left_out = read_ini(str(options.file), text, schema.ini, problems)
    known = [raw for raw in taken if schema.find(raw.section, raw.key) is not None]
    try:
        schema.build(known, problems, options.file)
    except ConfigError as error:
        raise Fail(str(error)) from None
    toml = "".join(line + "\n" for line in _lines(schema, known))
    if options.output is None:
        print(toml, end="")
    else:
        try:
            write_file(options.output, toml.encode(), 0o600)  # the settings may contain passwords
        except OSError as error:
            raise os_error(options.output, error) from None
    for raw in taken:
        if raw in known:
            report = f"taken over: [{raw.shown_section}] {raw.shown_key} → [{raw.section}] {raw.key}"
        else:
            report = _not_taken_over(raw, "unknown here")
        print(report, file=sys.stderr)
    for raw in left_out:
        print(_not_taken_over(raw, schema.ini.left_out_because(raw) or ""), file=sys.stderr)
    return 0


def _program_of(text: str) -> Program:
    """Only a notification server has the section SUBSCRIBER."""
    return NTF if re.search(r"^\s*\[SUBSCRIBER\]", text, re.MULTILINE) else SMP


def _not_taken_over(raw: Raw, why: str) -> str:
    return f"not taken over: [{raw.shown_section}] {raw.shown_key} (line {raw.line}): {why}"


def _lines(schema: Schema[Any], known: list[Raw]) -> Iterator[str]:
    for name, _ in schema.sections():
        values = {}  # if the file has a key twice, the last value counts
        for raw in known:
            setting = schema.find(raw.section, raw.key)
            if raw.section == name and setting is not None:
                kind = setting.metadata["kind"]
                values[raw.key] = kind.plain(kind.read(raw.value))
        if values:
            yield from toml_section(name, values)
