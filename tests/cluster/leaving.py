"""python -m tests.cluster.leaving ADDRESS PAGE SECONDS: a client of one edge that is about to stop.

Prints a line with a time (of the machine's monotonic clock) for each step: `connected`, `unready` when the edge's page
says so, `refused` when the edge accepts no more connections, and `cut` when the client is disconnected.
"""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp

from weir.client.smp import SmpClient
from weir.wire.address import SmpAddress

_STEP = 0.05


def say(step: str) -> None:
    print(step, time.monotonic(), flush=True)


async def unready(page: str) -> None:
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{page}/readyz") as response:
                if response.status != 200:
                    return say("unready")
            await asyncio.sleep(_STEP)


async def refused(host: str, port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            return say("refused")
        writer.close()
        await asyncio.sleep(_STEP)


async def cut(client: SmpClient) -> None:
    await client.closed.wait()
    say("cut")


async def main(text: str, page: str, seconds: float) -> int:
    address = SmpAddress.parse(text)
    assert address is not None
    async with await SmpClient.connect(address) as client, asyncio.timeout(seconds):
        await client.ping()
        say("connected")
        await asyncio.gather(unready(page), refused(address.hosts[0], address.effective_port), cut(client))
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
