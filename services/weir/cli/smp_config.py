"""`weir smp config`: checks a configuration file, and lists all settings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from pathlib import Path

from weir.cli.arguments import load_config, parser
from weir.cli.errors import Fail
from weir.config.schema import ConfigError
from weir.config.toml import toml_value
from weir.router.config import SCHEMA, SECRETS, RouterConfig


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp config",
        "Settings come from a file (TOML, or the reference server's ini) and from WEIR_… environment variables. The\n"
        "environment wins over the file.\n\n"
        "actions:\n"
        "  check      check the file and the environment; report every unknown key and bad value with its line\n"
        "  show       print the settings that are in effect; passwords are shown as (set)\n"
        "  list       print every setting with its default, as a commented TOML file\n"
        "  markdown   print docs/configuration.md",
        """
weir smp config check /etc/weir/weir.toml
WEIR_QUEUES_QUOTA=256 weir smp config show /etc/weir/weir.toml
weir smp config list
""",
    )
    p.add_argument("action", choices=("check", "show", "list", "markdown"))
    p.add_argument("file", nargs="?", type=Path, metavar="FILE")
    options = p.parse_args(argv)
    if options.action in ("list", "markdown"):
        print("\n".join(describe() if options.action == "list" else markdown()))
        return 0
    config = load_config(options.file)
    if options.action == "show":
        print("\n".join(effective(config)))
    else:
        if unknown := SCHEMA.unknown_in_environment(os.environ):
            raise Fail(str(ConfigError(unknown)))
        print(f"{options.file or 'environment'}: ok")
    return 0


def describe() -> Iterator[str]:
    """Yield every setting as the lines of a commented TOML file with the defaults."""
    for name, cls in SCHEMA.sections():
        yield f"[{name}]"
        for setting in fields(cls):
            kind, default = setting.metadata["kind"], setting.default
            shown = "" if default is None or default is MISSING else f" = {_toml(kind.show(default))}"
            yield f"# {setting.metadata['doc']} ({kind.name}; {SCHEMA.environment_name(name, setting.name)})"
            yield f"# {setting.name}{shown}"
        yield ""


_PAGE = """\
# Configuration

Settings come from one file (TOML, or the reference server's `smp-server.ini`) and from environment variables. The
environment wins over the file. `weir smp config check FILE` reports every unknown key and bad value with its line.
`weir smp config show FILE` prints the settings that are in effect. The value of any setting can also be read from a
file of its own: `WEIR_AUTH_CREATE_PASSWORD_FILE=/run/secrets/password`.

`weir import smp-server.ini` converts the reference server's settings to TOML and lists the settings that it has not
taken over. The identity directory of a reference server (`ca.crt`, `server.crt`, `server.key`) can be used unchanged:
the address stays the same.

Times are written as `"300ms"`, `"10s"`, `"5m"`, `"6h"`, `"21d"`, sizes as `"256KiB"`, `"64MiB"`. This page is the
output of `weir smp config markdown`.
"""


def markdown() -> Iterator[str]:
    """Yield every setting as the lines of docs/configuration.md."""
    yield _PAGE.rstrip()
    for name, cls in SCHEMA.sections():
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
                f"`{SCHEMA.environment_name(name, setting.name)}`",
            )
            yield f"| {' | '.join(cells)} |"


def effective(config: RouterConfig) -> Iterator[str]:
    """Yield the settings that are in effect as TOML lines, without passwords."""
    for name, cls in SCHEMA.sections():
        yield f"[{name}]"
        for setting in fields(cls):
            value = getattr(getattr(config, name), setting.name)
            if value is None:
                continue
            shown = "(set)" if setting.name in SECRETS else setting.metadata["kind"].show(value)
            shown = re.sub(r"^([a-z0-9+]+://)?[^/@]*@", r"\1(set)@", shown)  # a URL may contain a password
            yield f"{setting.name} = {_toml(shown)}"
        yield ""


def _toml(text: str) -> str:
    """Write the result of `Kind.show` as TOML: a number as a number, everything else as text."""
    return text if text.lstrip("-").replace(".", "", 1).isdigit() else toml_value(text)
