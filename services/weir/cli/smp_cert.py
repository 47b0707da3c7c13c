"""`weir smp cert`: a new online certificate; running edges take it up by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import host, parser, positive
from weir.cli.errors import Fail, os_error


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir smp cert",
        "Makes a new online certificate and key under the same CA. The address stays the same, and running edges\n"
        "take the new certificate up within seconds (at once on SIGHUP) without dropping a client.\n"
        "Needs ca.key: run it where that is kept and copy server.crt and server.key to the edges.",
        """
weir smp cert --dir /etc/weir --host smp.example.org
weir smp cert --dir /etc/weir --show
""",
    )
    p.add_argument("--dir", type=Path, required=True, metavar="DIR", help="the directory given to `weir smp init`")
    p.add_argument("--host", type=host, default="localhost", help="host name in the certificate")
    p.add_argument("--algorithm", choices=("ed448", "ed25519"), default="ed448", help="of the key (ed448)")
    p.add_argument("--days", type=positive, default=36500, help="valid for so long (36500)")
    p.add_argument("--show", action="store_true", help="only show how long the present one is valid")
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
    return 0
