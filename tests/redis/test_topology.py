"""The nodes of the partitions, and an administrative connection that closes while it is used."""

import asyncio
from binascii import crc_hqx

import pytest

from tests.support.redis import RedisServer
from weir.redis.connect import make_topology
from weir.redis.partitions import PLACES, REGISTRY, SLOTS
from weir.redis.url import parse
from weir.router.store import keys


def test_every_place_has_its_tags_slot() -> None:
    assert len(SLOTS) == keys.PARTITIONS + 1
    assert SLOTS[7] == crc_hqx(b"7", 0) % 16384
    assert PLACES[b"{weir}"] == REGISTRY


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
