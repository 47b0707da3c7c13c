"""`weir redis`: the bundled Valkey in the foreground, as the chart's embedded Redis and for trying things."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser, port
from weir.cli.errors import Fail, os_error


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir redis",
        "Runs the Valkey that comes with Weir, with an append-only file and no snapshots (the protocol forbids a\n"
        "history of messages). SIGTERM or Ctrl-C stops it cleanly; all data is in --dir.",
        """
weir redis --dir /var/lib/weir/redis --port 6379 --listen 127.0.0.1
weir redis --dir data --port 6379 --password-file /etc/weir/redis-password --durability fsync
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="where its data is")
    p.add_argument("--port", type=port, default=6379, metavar="P", help="to listen on (6379)")
    p.add_argument("--listen", default="0.0.0.0", metavar="ADDR", help="address to listen on (all)")
    p.add_argument("--password-file", type=Path, metavar="FILE", help="file with the password clients must give")
    p.add_argument("--durability", choices=("everysec", "fsync"), default="everysec", help="when writes reach the disk")
    options = p.parse_args(argv)
    from weir.store.embedded import start_embedded
    from weir.store.records import StoreError

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server = start_embedded(
            options.dir,
            port=options.port,
            listen=options.listen,
            password=_password(options.password_file) if options.password_file else None,
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
            raise Fail(f"the server ended by itself; its last lines are in {server.log}")
    server.stop()
    return 0


def _password(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise os_error(path, error) from None
