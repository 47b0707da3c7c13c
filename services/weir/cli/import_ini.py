"""`weir import`: converts a reference server's smp-server.ini to weir.toml, and reports on every setting."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.config.file import Problem, Raw, read_ini
from weir.config.schema import ConfigError
from weir.config.toml import toml_section
from weir.crypto.pem import write_file
from weir.router.config import SCHEMA


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir import",
        "Reads the reference server's smp-server.ini and writes the same settings as TOML. On standard error it lists\n"
        "the settings that it has taken over, with their new names, and those that it has not, with the reason.\n"
        "Queues and messages are not part of the file: clients move their queues to the new address.",
        """
weir import /etc/opt/simplex/smp-server.ini --output weir.toml
weir import smp-server.ini > weir.toml && weir smp config check weir.toml
""",
    )
    p.add_argument("file", type=Path, metavar="smp-server.ini")
    p.add_argument("--output", type=Path, metavar="FILE", help="file to write (standard output)")
    options = p.parse_args(argv)
    try:
        text = options.file.read_text("utf-8")
    except OSError as error:
        raise os_error(options.file, error) from None
    except UnicodeDecodeError:
        raise Fail(f"{options.file}: not a text file") from None
    problems: list[Problem] = []
    taken, left_out = read_ini(str(options.file), text, SCHEMA.ini, problems)
    known = [raw for raw in taken if SCHEMA.find(raw.section, raw.key) is not None]
    try:
        SCHEMA.build(known, problems, options.file)
    except ConfigError as error:
        raise Fail(str(error)) from None
    toml = "".join(line + "\n" for line in _lines(known))
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
        print(_not_taken_over(raw, SCHEMA.ini.left_out_because(raw) or ""), file=sys.stderr)
    return 0


def _not_taken_over(raw: Raw, why: str) -> str:
    return f"not taken over: [{raw.shown_section}] {raw.shown_key} (line {raw.line}): {why}"


def _lines(known: list[Raw]) -> Iterator[str]:
    for name, _ in SCHEMA.sections():
        values = {}  # if the file has a key twice, the last value counts
        for raw in known:
            setting = SCHEMA.find(raw.section, raw.key)
            if raw.section == name and setting is not None:
                kind = setting.metadata["kind"]
                values[raw.key] = kind.plain(kind.read(raw.value))
        if values:
            yield from toml_section(name, values)
