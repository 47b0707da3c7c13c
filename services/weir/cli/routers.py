"""`weir smp` and `weir ntf`: the parts of a router, each as a command of its own."""

from __future__ import annotations

from collections.abc import Sequence

from weir.cli.main import Command, dispatch
from weir.cli.programs import NTF, SMP, Program

_BOTH: dict[str, Command] = {
    "init": Command("weir.cli.router_init", "make the identity and the keys of a router"),
    "cert": Command("weir.cli.router_cert", "make a new online certificate under the same CA"),
    "edge": Command("weir.cli.router_edge", "run one edge, a process that serves clients"),
    "config": Command("weir.cli.router_config", "check a configuration file, list every setting"),
    "ctl": Command("weir.cli.router_ctl", "send a command to the control port of a running edge"),
}
COMMANDS: dict[Program, dict[str, Command]] = {
    SMP: _BOTH | {"check": Command("weir.cli.smp_check", "test a running router end to end, edge by edge")},
    NTF: _BOTH
    | {
        "up": Command("weir.cli.ntf_up", "start a notification router on this machine"),
        "check": Command("weir.cli.ntf_check", "test a running router as a device does, step by step"),
    },
}


def usage(program: Program) -> str:
    lines = "\n".join(f"  {name:8} {command.text}" for name, command in COMMANDS[program].items())
    return f"""\
usage: {program.command} COMMAND …

commands:
{lines}

`{program.command} COMMAND --help` explains a command with examples.
"""


def main(program: Program, argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage(program), end="")
        return 0
    return dispatch(program.command, COMMANDS[program], list(argv), program)
