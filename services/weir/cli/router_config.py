"""`weir smp config` and `weir ntf config`: checks a configuration file, and lists all settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from weir.cli.arguments import load_config, parser
from weir.cli.errors import Fail
from weir.cli.programs import NTF, PROGRAMS, SMP, Program
from weir.config.schema import ConfigError, Schema
from weir.config.toml import toml_value

_EXAMPLE = {SMP: "WEIR_QUEUES_QUOTA=256", NTF: "WEIR_SUBSCRIBER_HOST_MODE=onion"}


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        f"{program.command} config",
        "Settings come from a file (TOML, or the reference server's ini) and from WEIR_… environment variables. The\n"
        "environment wins over the file.\n\n"
        "actions:\n"
        "  check      check the file and the environment; report every unknown key and bad value with its line\n"
        "  show       print the settings that are in effect; passwords are shown as (set)\n"
        "  list       print every setting with its default, as a commented TOML file\n"
        "  markdown   print docs/configuration.md, which has the settings of both routers",
        f"""
{program.command} config check /etc/weir/weir.toml
{_EXAMPLE[program]} {program.command} config show /etc/weir/weir.toml
{program.command} config list
""",
    )
    p.add_argument("action", choices=("check", "show", "list", "markdown"))
    p.add_argument("file", nargs="?", type=Path, metavar="FILE")
    options = p.parse_args(argv)
    if options.action in ("list", "markdown"):
        print("\n".join(describe(program.schema) if options.action == "list" else markdown()))
        return 0
    config = load_config(program, options.file)
    if options.action == "show":
        print("\n".join(effective(program, config)))
    else:
        if unknown := program.schema.unknown_in_environment(os.environ):
            raise Fail(str(ConfigError(unknown)))
        print(f"{options.file or 'environment'}: ok")
    return 0


def describe(schema: Schema[Any]) -> Iterator[str]:
    """Yield every setting as the lines of a commented TOML file with the defaults."""
    for name, cls in schema.sections():
        yield f"[{name}]"
        for setting in fields(cls):
            kind, default = setting.metadata["kind"], setting.default
            shown = "" if default is None or default is MISSING else f" = {_toml(kind.show(default))}"
            yield f"# {setting.metadata['doc']} ({kind.name}; {schema.environment_name(name, setting.name)})"
            yield f"# {setting.name}{shown}"
        yield ""


_PAGE = """\
# Configuration

Settings come from one file (TOML, or the reference server's `smp-server.ini` or `ntf-server.ini`) and from environment
variables. The environment wins over the file. `weir smp config check FILE` and `weir ntf config check FILE` report
every unknown key and bad value with its line; `show FILE` prints the settings that are in effect. The value of any
setting can also be read from a file of its own: `WEIR_AUTH_CREATE_PASSWORD_FILE=/run/secrets/password`.

`weir import smp-server.ini` and `weir import ntf-server.ini` convert a reference server's settings to TOML and list the
settings that they have not taken over. The identity directory of a reference server (`ca.crt`, `server.crt`,
`server.key`) can be used unchanged: the address stays the same.

Times are written as `"300ms"`, `"10s"`, `"5m"`, `"6h"`, `"21d"`, sizes as `"256KiB"`, `"64MiB"`. This page is the
output of `weir smp config markdown`.
"""


def markdown() -> Iterator[str]:
    """Yield every setting as the lines of docs/configuration.md."""
    yield _PAGE.rstrip()
    for program in PROGRAMS.values():
        yield f"\n# Settings of the {program.title}"
        yield from _tables(program.schema)


def _tables(schema: Schema[Any]) -> Iterator[str]:
    for name, cls in schema.sections():
        yield f"\n## [{name}]\n"
        yield "| key | default | meaning | environment |"
        yield "|---|---|---|---|"
        for setting in fields(cls):
            kind, default = setting.metadata["kind"], setting.default
            shown = kind.show(default) if default not in (None, ()) else ""
            cells = (
                f"`{setting.name}`",
                f"`{shown}`" if shown else "",
                f"{setting.metadata['doc']} ({kind.name})".replace("|", "\\|"),
                f"`{schema.environment_name(name, setting.name)}`",
            )
            yield f"| {' | '.join(cells)} |"


def effective(program: Program, config: Any) -> Iterator[str]:
    """Yield the settings that are in effect as TOML lines, without passwords."""
    for name, cls in program.schema.sections():
        yield f"[{name}]"
        for setting in fields(cls):
            value = getattr(getattr(config, name), setting.name)
            if value is None:
                continue
            shown = "(set)" if setting.name in program.secrets else setting.metadata["kind"].show(value)
            shown = re.sub(r"^([a-z0-9+]+://)?[^/@]*@", r"\1(set)@", shown)  # a URL may contain a password
            yield f"{setting.name} = {_toml(shown)}"
        yield ""


def _toml(text: str) -> str:
    """Write the result of `Kind.show` as TOML: a number as a number, everything else as text."""
    return text if text.lstrip("-").replace(".", "", 1).isdigit() else toml_value(text)
