"""The `weir` command. It imports only the module of the command that runs, so that every command starts quickly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from weir.cli.errors import Fail
from weir.cli.programs import PROGRAMS, Program


class Command(NamedTuple):
    module: str
    text: str


COMMANDS: dict[str, Command] = {
    "up": Command("weir.cli.up", "start a complete router on this machine: identity, Redis, edges"),
    "ping": Command("weir.cli.ping", "connect to any SMP router and measure the round-trip time"),
    "smp": Command("weir.cli.routers", "the parts of an SMP router: init, cert, edge, config, ctl, check"),
    "ntf": Command("weir.cli.routers", "a notification router: up, init, cert, edge, config, ctl, check"),
    "service": Command("weir.cli.service", "list, inspect, rotate and forget receive and notification services"),
    "import": Command("weir.cli.import_ini", "convert a reference server's ini file to weir.toml"),
    "redis": Command("weir.cli.redis", "run the bundled Valkey server alone"),
    "bench": Command("weir.cli.bench", "measure this machine and any SMP router"),
    "pipeline": Command("weir.cli.pipeline", "make tables and a report of what the routers did, with Spark"),
    "operator": Command("weir_operator.main", "run the Kubernetes operator"),
}

USAGE = f"""\
usage: weir COMMAND …

commands:
{chr(10).join(f"  {name:10} {command.text}" for name, command in COMMANDS.items())}

`weir COMMAND --help` explains a command with examples. To begin:
  weir up --home data --host 127.0.0.1      start a router on this machine
  weir ping smp://…                         check that the router answers
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
    return dispatch("weir", COMMANDS, arguments, PROGRAMS.get(arguments[0]))


def dispatch(program: str, commands: dict[str, Command], arguments: list[str], of: Program | None = None) -> int:
    """Run `commands[arguments[0]]` with the other arguments and return the exit code.

    A command `of` a router is the same module for each router. A command that fails prints one clear line and returns
    1. Ctrl-C returns 130.
    """
    name, rest = arguments[0], arguments[1:]
    command = commands.get(name)
    if command is None:
        print(f"{program}: unknown command {name!r}; the commands are {', '.join(commands)}", file=sys.stderr)
        return 2
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "weir":
            raise
        print(f"{program} {name}: needs the Python package {error.name} (pip install 'weir[{name}]')", file=sys.stderr)
        return 1
    try:
        code: int = module.main(rest) if of is None else module.main(of, rest)
    except Fail as failure:
        print(f"{program} {name}: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # The reader of the output has gone: keep the interpreter from reporting that at exit.
        return 141
    except Exception as error:
        from weir.transport.openssl import OpenSSLUnavailable  # late: few commands use TLS

        if not isinstance(error, OpenSSLUnavailable):
            raise
        print(f"{program} {name}: {error}", file=sys.stderr)
        return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
