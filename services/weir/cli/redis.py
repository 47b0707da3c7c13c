"""`weir redis`: runs the bundled Valkey in the foreground. The Helm chart's embedded Redis is this command."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser, read_secret
from weir.cli.errors import Fail, os_error
from weir.config.options import port


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir redis",
        "Runs the Valkey server that comes with Weir, with an append-only file and without snapshots, because the\n"
        "protocol forbids a history of messages. All data is in --dir. SIGTERM or Ctrl-C stops the server cleanly.",
        """
weir redis --dir /var/lib/weir/redis --port 6379 --listen 127.0.0.1
weir redis --dir data --port 6379 --password-file /etc/weir/redis-password --durability fsync
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="directory of the data")
    p.add_argument("--port", type=port, default=6379, metavar="P", help="port to listen on (6379)")
    p.add_argument("--listen", default="0.0.0.0", metavar="ADDR", help="address to listen on (all)")
    p.add_argument("--password-file", type=Path, metavar="FILE", help="file with the password for clients (none)")
    p.add_argument(
        "--durability",
        choices=("everysec", "fsync"),
        default="everysec",
        help="write to disk once a second, or before each answer (everysec)",
    )
    options = p.parse_args(argv)
    from weir.redis.embedded import start_embedded
    from weir.redis.errors import StoreError

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = start_embedded(
            options.dir,
            port=options.port,
            listen=options.listen,
            password=read_secret(options.password_file) if options.password_file else None,
            appendfsync="always" if options.durability == "fsync" else "everysec",
            options={"protected-mode": "no"},
        )
    except StoreError as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or options.dir, error) from None
    print(f"weir redis: listening on {options.listen}:{options.port}, data in {options.dir}", flush=True)
    while not stop.wait(1.0):
        if not server.running:
            raise Fail(f"the server has ended unexpectedly; its log is {server.log}")
    server.stop()
    return 0
