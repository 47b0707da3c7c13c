"""`weir smp`: the parts of an SMP router, each as a command of its own."""

from __future__ import annotations

from collections.abc import Sequence

from weir.cli.main import Command, dispatch

COMMANDS: dict[str, Command] = {
    "init": Command("weir.cli.smp_init", "make the identity of a router: CA and online certificate"),
    "cert": Command("weir.cli.smp_cert", "make a new online certificate under the same CA"),
    "edge": Command("weir.cli.smp_edge", "run one edge, a process that serves clients"),
    "config": Command("weir.cli.smp_config", "check a configuration file, list every setting"),
    "ctl": Command("weir.cli.smp_ctl", "send a command to the control port of a running edge"),
    "check": Command("weir.cli.smp_check", "test a running router end to end, edge by edge"),
}

USAGE = f"""\
usage: weir smp COMMAND …

commands:
{chr(10).join(f"  {name:8} {command.text}" for name, command in COMMANDS.items())}

`weir smp COMMAND --help` explains a command with examples.
"""


def main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    return dispatch("weir smp", COMMANDS, list(argv))
