"""`weir ping`: checks that a router answers, and prints its identity, versions and round-trip times."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence

from weir.cli.arguments import parser, smp_address
from weir.cli.errors import Fail
from weir.client.errors import ClientError
from weir.client.smp import SmpClient
from weir.config.options import seconds, whole
from weir.transport.client import ConnectError
from weir.wire.address import SmpAddress
from weir.wire.errors import HandshakeError


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir ping",
        "Connects to an SMP router, checks that its certificate has the fingerprint in the address, and sends PING.\n"
        "Prints the router's version range, the agreed version, the TLS parameters and the round-trip times.",
        """
weir ping smp://FINGERPRINT@smp.example.org
weir ping smp://FINGERPRINT@127.0.0.1:5223 --count 10
weir ping smp://FINGERPRINT@old.example.org --no-alpn      # as the oldest clients connect
""",
    )
    p.add_argument("address", help="smp://FINGERPRINT@host[,host…][:port]")
    p.add_argument("--count", type=whole(1, 1_000_000), default=3, metavar="N", help="number of PINGs (3)")
    p.add_argument("--timeout", type=seconds(), default=10.0, metavar="S", help="seconds to wait for each answer (10)")
    p.add_argument("--tls12", action="store_true", help="use TLS 1.2")
    p.add_argument("--no-alpn", action="store_true", help="send no ALPN, as clients of version 6 do")
    options = p.parse_args(argv)
    address = smp_address(options.address)
    return asyncio.run(_ping(address, options.count, options.timeout, options.tls12, not options.no_alpn))


async def _ping(address: SmpAddress, count: int, timeout: float, tls12: bool, alpn: bool) -> int:
    where = f"{','.join(address.hosts)}:{address.effective_port}"
    try:
        client = await SmpClient.connect(address, reply_timeout=timeout, timeout=timeout, tls12=tls12, alpn=alpn)
    except ConnectError as error:
        raise Fail(f"{where}: {_explain(error)}") from None
    async with client:
        connection = client.connection
        tls = connection.tls
        versions = connection.server_versions
        print(f"connected to  {where}")
        print(f"versions      {versions.min}–{versions.max}, agreed on {client.session.version}")
        if tls is not None:
            cipher = tls.cipher() or ("unknown", "", 0)
            print(f"TLS           {tls.version()} {cipher[0]}, ALPN {tls.selected_alpn_protocol() or 'none'}")
        times = []
        for number in range(1, count + 1):
            try:
                times.append(await client.ping() * 1000)
            except ClientError as error:
                raise Fail(f"{where}: no answer to PING ({type(error).__name__})") from None
            print(f"PONG {number}        {times[-1]:.2f} ms")
        print(f"round trip    min {min(times):.2f}, median {statistics.median(times):.2f}, max {max(times):.2f} ms")
    return 0


def _explain(error: ConnectError) -> str:
    if error.error is HandshakeError.IDENTITY and not error.detail:
        return "another router answers there: its certificate does not have the fingerprint in the address"
    return str(error)
