"""`weir smp init` and `weir ntf init`: makes the identity of a router and the keys of the deployment."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from weir.cli.arguments import add_certificate_options, host, parser
from weir.cli.ed448 import ed448_warning
from weir.cli.errors import Fail, os_error
from weir.cli.programs import NTF, SMP, Program
from weir.config.options import port

if TYPE_CHECKING:
    from weir.crypto.identity import Identity
    from weir.crypto.p256 import PrivateKey


_KEYS = {
    SMP: "the placement key of the deployment.",
    NTF: "the keys of the deployment: placement.key, storage.key (encrypts what\n"
    "is stored) and vapid.key (signs for push services; its public key is in the address).\n",
}


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        f"{program.command} init",
        "Makes the identity of a router: a CA (addresses contain its fingerprint), an online certificate under the\n"
        f"CA, and {_KEYS[program]} Fails if the directory already contains an identity.\n"
        f"Only `{program.command} cert` needs ca.key again: keep it away from the edges.",
        f"""
{program.command} init --dir /etc/weir --host {program.name}.example.org
{program.command} init --dir id --host {program.name}.example.org --port 5443
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="directory for identity/ and the keys")
    p.add_argument(
        "--host", type=host, default="localhost", help="host name in the certificate and the address (localhost)"
    )
    p.add_argument("--port", type=port, default=0, help=f"port in the printed address ({program.port})")
    add_certificate_options(p)
    options = p.parse_args(argv)
    identity = make_identity(options.dir / "identity", options.host, options.algorithm, options.days)
    make_deployment_key(options.dir / "placement.key")
    query = ""
    if program is NTF:
        from weir.notifier.address import vapid_query

        make_deployment_key(options.dir / "storage.key")
        query = vapid_query(make_vapid_key(options.dir / "vapid.key"))
    from weir.wire.address import SmpAddress

    port_shown = None if options.port in (0, program.port) else options.port
    address = SmpAddress(identity.fingerprint, (options.host,), port_shown, scheme=program.name)
    print(f"identity   {options.dir / 'identity'}")
    print(f"address    {address}{query}")
    if program is NTF:
        print(f'settings   [web_push] vapid_key = "{options.dir / "vapid.key"}"')
    if warning := ed448_warning(identity):
        print(f"{program.command} init: warning: {warning}", file=sys.stderr)
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


def make_vapid_key(path: Path) -> PrivateKey:
    """Return the key that signs for push services. If there is none, make one."""
    from weir.crypto.p256 import generate, load_key, save_key
    from weir.crypto.pem import UnusableFile

    try:
        if not path.exists():
            save_key(path, generate())
        return load_key(path)
    except UnusableFile as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(path, error) from None


def make_deployment_key(path: Path) -> None:
    """Make a new 32-byte key unless the file exists. The key must never change while data is stored."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise os_error(path, error) from None
    with os.fdopen(descriptor, "w") as file:
        file.write(os.urandom(32).hex() + "\n")
