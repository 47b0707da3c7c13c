"""Where partitions are, and what becomes of a connection to ask with that closes under the question."""

import asyncio
from binascii import crc_hqx

import pytest

from tests.support.redis import RedisServer
from weir.store import keys
from weir.store.topology import PLACES, REGISTRY, SLOTS, make
from weir.store.url import parse


def test_every_place_has_its_tags_slot() -> None:
    assert len(SLOTS) == keys.PARTITIONS + 1
    assert SLOTS[7] == crc_hqx(b"7", 0) % 16384
    assert PLACES[b"{weir}"] == REGISTRY


async def test_a_connection_that_has_just_closed_is_an_oserror(redis_server: RedisServer) -> None:
    """uvloop says RuntimeError, which would end whoever looks for the master, and with it every call of the edge."""
    url = parse(redis_server.url)
    where = make(url, deadline=5.0)
    with pytest.raises(OSError, match="closes the connection"):
        async with where.admin(url.nodes[0]) as client:
            await client.ping()
            connection = client.connection_pool._available_connections[0]
            connection._writer.transport.abort()
            await asyncio.sleep(0)
            connection._writer.writelines([b"PING\r\n"])
