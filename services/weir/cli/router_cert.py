"""`weir smp cert` and `weir ntf cert`: makes a new online certificate. Running edges reload it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import add_certificate_options, host, parser
from weir.cli.ed448 import ed448_warning
from weir.cli.errors import Fail, os_error
from weir.cli.programs import Program


def main(program: Program, argv: Sequence[str]) -> int:
    p = parser(
        f"{program.command} cert",
        "Makes a new online certificate and key under the same CA. The address of the router stays the same. Running\n"
        "edges reload the certificate within seconds (at once on SIGHUP) and keep their clients connected.\n"
        "This command needs ca.key: run it where ca.key is kept, then copy server.crt and server.key to the edges.",
        f"""
{program.command} cert --dir /etc/weir --host {program.name}.example.org
{program.command} cert --dir /etc/weir --show
""",
    )
    p.add_argument(
        "--dir", type=Path, required=True, metavar="DIR", help=f"the directory given to `{program.command} init`"
    )
    p.add_argument("--host", type=host, default="localhost", help="host name in the certificate (localhost)")
    add_certificate_options(p)
    p.add_argument("--show", action="store_true", help="make nothing; show how long the present certificate is valid")
    options = p.parse_args(argv)
    from weir.crypto.certificates import days_to_expiry
    from weir.crypto.identity import load_identity, renew_online
    from weir.crypto.pem import UnusableFile

    directory = options.dir / "identity"
    try:
        if options.show:
            identity = load_identity(directory)
        else:
            identity = renew_online(directory, options.host, options.algorithm, options.days)
    except UnusableFile as error:
        raise Fail(str(error)) from None
    except OSError as error:
        raise os_error(error.filename or directory, error) from None
    days = days_to_expiry(identity.chain[0]) or 0.0
    print(f"{directory / 'server.crt'}: valid for {int(days)} more days, {identity.key.type}")
    if warning := ed448_warning(identity):
        print(f"{program.command} cert: warning: {warning}", file=sys.stderr)
    return 0
