"""python -m tests.cluster.watcher ADDRESS SECONDS: stays connected, and looks which certificate new clients are shown.

Prints `connected`, then `rotated` when only a new one is shown, and exits 0 if its own connection, made before, has
answered every PING meanwhile.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys

from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.transport.tls import peer_chain
from weir.wire.address import SmpAddress

_IN_A_ROW = 6  # connections that must all be shown a new certificate: chance spreads them over two edges


async def connect(address: SmpAddress) -> NtfClient | SmpClient:
    return await (NtfClient if address.scheme == "ntf" else SmpClient).connect(address)


async def leaf(address: SmpAddress) -> str:
    async with await connect(address) as client:
        tls = client.connection.tls
        assert tls is not None
        return hashlib.sha256(peer_chain(tls)[0]).hexdigest()


async def main(text: str, seconds: float) -> int:
    address = SmpAddress.parse(text)
    assert address is not None
    async with await connect(address) as client, asyncio.timeout(seconds):
        first = await leaf(address)
        print("connected", flush=True)
        new = 0
        while new < _IN_A_ROW:
            await client.ping()
            new = new + 1 if await leaf(address) != first else 0
            await asyncio.sleep(0.5)
        await client.ping()
        assert not client.closed.is_set()
        print("rotated", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], float(sys.argv[2]))))
