"""`weir smp config`: check a file, or show every setting there is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING
from pathlib import Path

from weir.cli.arguments import load_config, parser
from weir.cli.errors import Fail
from weir.router.config import (
    SECRETS,
    ConfigError,
    RouterConfig,
    environment_name,
    sections,
    settings_of,
    unknown_in_environment,
)


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp config",
        "check: reads a configuration file (TOML, or the reference's ini) with the environment's WEIR_… settings and\n"
        "names every unknown key and bad value with its line.\n"
        "show: what is in force. list: every setting, as TOML. markdown: the same as docs/configuration.md.",
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
        if unknown := unknown_in_environment(os.environ):
            raise Fail(str(ConfigError(unknown)))
        print(f"{options.file or 'environment'}: ok")
    return 0


def describe() -> Iterator[str]:
    """Every setting as a commented TOML file with the defaults."""
    for name, cls in sections():
        yield f"[{name}]"
        for setting in settings_of(cls):
            kind, default = setting.metadata["kind"], setting.default
            shown = "" if default is None or default is MISSING else f" = {_toml(kind.show(default))}"
            yield f"# {setting.metadata['doc']} ({kind.name}; {environment_name(name, setting.name)})"
            yield f"# {setting.name}{shown}"
        yield ""


_PAGE = """\
# Configuration

One file, TOML or the reference's ini (`smp-server.ini`), and the environment, which wins. `weir smp config check FILE`
names every unknown key and bad value with its line, `weir smp config show FILE` prints what is in force. Any setting
can also be read from a file of its own: `WEIR_AUTH_CREATE_PASSWORD_FILE=/run/secrets/password`.

`weir import smp-server.ini` writes the same settings as TOML and says what it took over and what not. The reference's
identity directory (`ca.crt`, `server.crt`, `server.key`) can be used as it is: the address stays the same.

Times are `"300ms"`, `"10s"`, `"5m"`, `"6h"`, `"21d"`; sizes `"256KiB"`, `"64MiB"`. This page is made by
`weir smp config markdown`.
"""


def markdown() -> Iterator[str]:
    """Every setting as a page of documentation."""
    yield _PAGE.rstrip()
    for name, cls in sections():
        yield f"\n## [{name}]\n"
        yield "| key | default | what | environment |"
        yield "|---|---|---|---|"
        for setting in settings_of(cls):
            kind, default = setting.metadata["kind"], setting.default
            shown = kind.show(default) if default not in (None, ()) else ""
            cells = (
                f"`{setting.name}`",
                f"`{shown}`" if shown else "",
                f"{setting.metadata['doc']} ({kind.name})".replace("|", "\\|"),
                f"`{environment_name(name, setting.name)}`",
            )
            yield f"| {' | '.join(cells)} |"


def effective(config: RouterConfig) -> Iterator[str]:
    for name, cls in sections():
        yield f"[{name}]"
        for setting in settings_of(cls):
            value = getattr(getattr(config, name), setting.name)
            if value is None:
                continue
            shown = "(set)" if setting.name in SECRETS else setting.metadata["kind"].show(value)
            shown = re.sub(r"^([a-z0-9+]+://)?[^/@]*@", r"\1(set)@", shown)  # URLs may have a password in them, too
            yield f"{setting.name} = {_toml(shown)}"
        yield ""


def _toml(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return text if text.lstrip("-").replace(".", "", 1).isdigit() else f'"{plain}"'
