"""The nodes of the partitions, and an administrative connection that closes while it is used."""

import asyncio
import gc
from binascii import crc_hqx
from typing import Any

import pytest

from tests.support.redis import RedisServer
from weir.redis import topology
from weir.redis.connect import make_topology
from weir.redis.partitions import PARTITIONS, REGISTRY, Partitions
from weir.redis.url import parse


def test_every_place_has_its_tags_slot() -> None:
    partitions = Partitions()
    assert len(partitions.slots) == PARTITIONS + 1
    assert partitions.slots[7] == crc_hqx(b"7", 0) % 16384
    assert partitions.places[b"{weir}"] == REGISTRY


async def test_a_connection_that_has_just_closed_is_an_oserror(redis_server: RedisServer) -> None:
    """uvloop says RuntimeError, which would end whoever looks for the master, and with it every call of the edge."""
    url = parse(redis_server.url)
    where = make_topology(url, deadline=5.0)
    with pytest.raises(OSError, match="closed the connection"):
        async with where.admin(url.nodes[0]) as client:
            await client.ping()
            connection = client.connection_pool._available_connections[0]
            connection._writer.transport.abort()
            await asyncio.sleep(0)
            connection._writer.writelines([b"PING\r\n"])


UNKNOWN = ".".join(["x" * 50] * 5)[:254]  # too long for DNS, so the lookup fails without a question to any server


@pytest.mark.parametrize("url", [f"redis://{UNKNOWN}", f"redis+sentinel://{UNKNOWN}/main"])
@pytest.mark.parametrize("call", ["info", "dial", "admin"])
async def test_a_lookup_that_takes_too_long_ends_with_its_caller(
    url: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """uvloop's create_connection leaves its lookup behind when it is cancelled. The failure of that lookup is then an
    exception that nobody retrieves, and the loop logs a traceback."""
    loop = asyncio.get_running_loop()
    problems: list[Any] = []
    loop.set_exception_handler(lambda _loop, context: problems.append(context["message"]))
    monkeypatch.setattr(topology, "_DIAL_LIMIT", 0.0)
    where = make_topology(parse(url), deadline=1.0)
    with pytest.raises(OSError):
        node = await where.master(0)
        if call == "info":
            await where.info(node)
        elif call == "dial":
            await where.dial(node, asyncio.Protocol())
        else:
            async with where.admin(node) as client:
                await client.ping()
    for _ in range(2):
        with pytest.raises(OSError):
            await loop.getaddrinfo(UNKNOWN, 1)  # the lookup before has ended by then, too
        await asyncio.sleep(0)
    gc.collect()
    assert problems == []
