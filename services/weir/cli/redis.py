"""`weir redis`: runs the bundled Valkey in the foreground. The Helm chart's embedded Redis is this command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.arguments import parser, read_secret
from weir.cli.errors import Fail, os_error
from weir.config.kinds import SIZE
from weir.config.options import of_kind, port

if TYPE_CHECKING:
    from weir.redis.embedded import Embedded


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir redis",
        "Runs the Valkey server that comes with Weir, with an append-only file and without snapshots, because the\n"
        "protocol forbids a history of messages. All data is in --dir. SIGTERM or Ctrl-C stops the server cleanly.\n"
        "The server accepts each line of the password file, and follows changes of the file within seconds. Open\n"
        "connections stay. To rotate a password, add a line, change the clients, and remove the old line.",
        """
weir redis --dir /var/lib/weir/redis --port 6379 --listen 127.0.0.1
weir redis --dir data --port 6379 --password-file /etc/weir/redis-password --durability fsync
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="directory of the data")
    p.add_argument("--port", type=port, default=6379, metavar="P", help="port to listen on (6379)")
    p.add_argument("--listen", default="0.0.0.0", metavar="ADDR", help="address to listen on (all)")
    p.add_argument(
        "--password-file", type=Path, metavar="FILE", help="file with the passwords for clients, one a line (none)"
    )
    p.add_argument(
        "--durability",
        choices=("everysec", "fsync"),
        default="everysec",
        help="write to disk once a second, or before each answer (everysec)",
    )
    p.add_argument(
        "--max-memory",
        type=of_kind(SIZE),
        metavar="SIZE",
        help="memory for data, e.g. 512MiB; 0: no limit (3/4 of what the container or the machine has)",
    )
    options = p.parse_args(argv)
    from weir.redis.embedded import start_embedded
    from weir.redis.errors import StoreError
    from weir.redis.memory import default_limit

    passwords = _passwords(options.password_file) if options.password_file else ()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = start_embedded(
            options.dir,
            port=options.port,
            listen=options.listen,
            password=passwords[0] if passwords else None,
            other_passwords=passwords[1:],
            appendfsync="always" if options.durability == "fsync" else "everysec",
            options={
                "protected-mode": "no",
                "maxmemory": str(default_limit() if options.max_memory is None else options.max_memory),
            },
        )
    except StoreError as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or options.dir, error) from None
    print(f"weir redis: listening on {options.listen}:{options.port}, data in {options.dir}", flush=True)
    while not stop.wait(1.0):
        if not server.running:
            raise Fail(f"the server has ended unexpectedly; its log is {server.log}")
        if passwords:
            passwords = _follow(options.password_file, server, passwords)
    server.stop()
    return 0


def _passwords(path: Path) -> tuple[str, ...]:
    found = tuple(filter(None, (line.strip() for line in read_secret(path).splitlines())))
    if not found:
        raise Fail(f"{path}: the file has no password")
    return found


def _follow(path: Path, server: Embedded, accepted: tuple[str, ...]) -> tuple[str, ...]:
    """Make the server accept the passwords that the file has now. Return those that the server accepts."""
    try:
        found = _passwords(path)
    except Fail:
        return accepted  # the file is empty for a moment while somebody writes it
    if found == accepted or not server.accept_passwords(found):
        return accepted
    print(f"weir redis: the password file has changed; passwords accepted now: {len(found)}", flush=True)
    return found
