"""`weir smp init`: makes the identity of a router."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.arguments import add_certificate_options, host, parser
from weir.cli.ed448 import ed448_warning
from weir.cli.errors import Fail, os_error
from weir.config.options import port

if TYPE_CHECKING:
    from weir.crypto.identity import Identity


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp init",
        "Makes the identity of a router: a CA (addresses contain its fingerprint), an online certificate under the\n"
        "CA, and the placement key of the deployment. Fails if the directory already contains an identity.\n"
        "Only `weir smp cert` needs ca.key again: keep it away from the edges.",
        """
weir smp init --dir /etc/weir --host smp.example.org
weir smp init --dir id --host smp.example.org --port 443
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="directory for identity/ and placement.key")
    p.add_argument(
        "--host", type=host, default="localhost", help="host name in the certificate and the address (localhost)"
    )
    p.add_argument("--port", type=port, default=0, help="port in the printed address (5223)")
    add_certificate_options(p)
    options = p.parse_args(argv)
    identity = make_identity(options.dir / "identity", options.host, options.algorithm, options.days)
    make_placement_key(options.dir / "placement.key")
    from weir.wire.address import SmpAddress

    print(f"identity   {options.dir / 'identity'}")
    print(f"address    {SmpAddress(identity.fingerprint, (options.host,), options.port or None)}")
    if warning := ed448_warning(identity):
        print(f"weir smp init: warning: {warning}", file=sys.stderr)
    return 0


def make_identity(directory: Path, host: str, algorithm: str = "ed25519", days: int = 36500) -> Identity:
    """Make a new identity."""
    from weir.crypto.identity import init_identity
    from weir.crypto.pem import UnusableFile

    try:
        return init_identity(directory, host, "ed448" if algorithm == "ed448" else "ed25519", days)
    except UnusableFile as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or directory, error) from None


def make_placement_key(path: Path) -> None:
    """Make a new key unless the file exists. The key must never change while there are queues."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise os_error(path, error) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(os.urandom(32).hex() + "\n")
