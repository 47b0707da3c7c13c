"""The `weir` command: finds the module of a command and imports nothing else, so that every command starts quickly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from weir.cli.errors import Fail


class Command(NamedTuple):
    module: str
    text: str


COMMANDS: dict[str, Command] = {
    "up": Command("weir.cli.up", "start a router on this machine: Redis, edges, identity and all"),
    "ping": Command("weir.cli.ping", "connect to any SMP router and measure the round trip"),
    "smp": Command("weir.cli.smp", "the parts of an SMP router: init, cert, edge, config, ctl, check"),
    "service": Command("weir.cli.service", "receive and notification services: list, show, drift, rotate, forget"),
    "import": Command("weir.cli.import_ini", "turn a reference server's smp-server.ini into weir.toml"),
    "redis": Command("weir.cli.redis", "run the bundled Valkey alone"),
    "bench": Command("weir.cli.bench", "measure this machine, our router or any other"),
    "operator": Command("weir_operator.main", "the Kubernetes operator"),
    "ntf": Command("weir.cli.ntf", "the notification router (not in this release)"),
}

USAGE = f"""\
usage: weir COMMAND …

commands:
{chr(10).join(f"  {name:10} {command.text}" for name, command in COMMANDS.items())}

`weir COMMAND --help` explains a command with examples. For a start:
  weir up --home data --host 127.0.0.1      a router on this machine
  weir ping smp://…                         is it there?
"""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    if arguments[0] in ("-V", "--version"):
        import weir

        print(f"weir {weir.__version__}")
        return 0
    return dispatch("weir", COMMANDS, arguments)


def dispatch(program: str, commands: dict[str, Command], arguments: list[str]) -> int:
    """Run `commands[arguments[0]]` with the rest. One clear line and 1 when it fails, 130 after Ctrl-C."""
    name, rest = arguments[0], arguments[1:]
    command = commands.get(name)
    if command is None:
        print(f"{program}: no command {name!r}; there are {', '.join(commands)}", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "weir":
            raise
        print(f"{program} {name}: needs the Python package {error.name} (pip install 'weir[{name}]')", file=sys.stderr)
        return 1
    try:
        code: int = module.main(rest)
    except Fail as failure:
        print(f"{program} {name}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone; the interpreter must not complain about it at exit
        return 141
    return code


if __name__ == "__main__":
    sys.exit(main())
