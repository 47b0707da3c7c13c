"""`weir smp ctl` and `weir ntf ctl`: sends a command to the control port of an edge."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import load_config, parser, read_secret
from weir.cli.errors import Fail
from weir.cli.programs import NTF, SMP, Program
from weir.config.options import port

_GREETING_LINES = 2
_EXAMPLES = {
    SMP: (
        "--config /etc/weir/weir.toml stats",
        "--port 5224 --password-file admin.txt clients",
        "--config weir.toml block SENDER_ID reason=spam",
    ),
    NTF: ("--config /etc/weir/weir.toml stats", "--port 5227 --password-file admin.txt server-info"),
}
_COMMANDS = {
    SMP: "stats, clients, sockets, server-info, status ID, block ID …, help, …",
    NTF: "stats, stats-rts, server-info, servers, suspend, resume, save, help",
}


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        f"{program.command} ctl",
        "Sends one command to the control port of a running edge and prints the answer. The port and the password\n"
        "come from the edge's configuration file. The options and WEIR_CONTROL_PASSWORD win over the file.\n"
        "The command `help` lists the commands.",
        "\n".join(f"{program.command} ctl {example}" for example in _EXAMPLES[program]),
    )
    p.add_argument("--config", type=Path, metavar="FILE", help="configuration file of the edge")
    p.add_argument("--host", help="address of the control port (127.0.0.1)")
    p.add_argument("--port", type=port, help=f"number of the control port ({program.reference_control_port})")
    p.add_argument("--password-file", type=Path, metavar="FILE", help="file with the admin's or the user's password")
    p.add_argument("command", nargs="+", help=_COMMANDS[program])
    options = p.parse_intermixed_args(argv)
    config = load_config(program, options.config)
    host = options.host or config.control.listen
    number = options.port if options.port is not None else config.control.port or program.reference_control_port
    password = os.environ.get("WEIR_CONTROL_PASSWORD") or config.auth.control_port_admin_password
    password = password or config.auth.control_port_user_password
    if options.password_file:
        password = read_secret(options.password_file)
    if any("\n" in word for word in options.command):
        raise Fail("a command cannot contain line breaks")
    answer = _run_command(host, number, password, " ".join(options.command))
    sys.stdout.write(answer)
    return 1 if any(line.startswith(("AUTH", "error")) for line in answer.splitlines()) else 0


def _run_command(host: str, number: int, password: str | None, command: str) -> str:
    lines = [f"auth {password}"] if password else []
    lines += [command, "quit", ""]
    try:
        with socket.create_connection((host, number), timeout=10) as connection:
            connection.sendall("\n".join(lines).encode())
            answer = connection.makefile("rb").read().decode("utf-8", "replace")
    except OSError as error:
        raise Fail(f"control port {host}:{number}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeError:
        raise Fail(f"control port {host}:{number}: not a host name") from None
    found = answer.splitlines(keepends=True)[_GREETING_LINES:]
    if password and found and not found[0].startswith("error"):
        del found[0]  # the role; an error says why there is none
    return "".join(found)
