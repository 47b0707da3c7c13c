"""Which Sentinel is believed: of two that name different masters, the one that knows of the later fail-over."""

import asyncio

import pytest

from tests.redis.test_durability import port_of, running
from tests.redis.test_failover import client_of_sentinel, fail_over, sentinel
from tests.support.redis import DEBIAN, SERVERS, client_of, start_server, until
from weir.redis.sentinel import Sentinels
from weir.redis.url import Node, parse

_SERVER = DEBIAN or SERVERS["valkey"]
_LIMIT = 3.0


def both(*urls: str) -> Sentinels:
    hosts = ",".join(url.removeprefix("redis+sentinel://").removesuffix("/weir") for url in urls)
    return Sentinels(parse(f"redis+sentinel://{hosts}/weir"))


@pytest.mark.timeout(120)
async def test_the_latest_fail_over_counts() -> None:
    master, replica, other = (start_server(_SERVER, port=0) for _ in range(3))
    with running(master, replica, other), sentinel(port_of(other)) as stale:
        with sentinel(port_of(master)) as current:
            with client_of(replica) as follower, client_of_sentinel(current) as watcher:
                follower.replicaof("127.0.0.1", port_of(master))
                await asyncio.to_thread(until, lambda: follower.info("replication")["master_link_status"] == "up")
                await asyncio.to_thread(until, lambda: len(watcher.sentinel_slaves("weir")) == 1)
                await asyncio.to_thread(fail_over, current)
                await asyncio.to_thread(until, lambda: watcher.sentinel_master("weir")["port"] == port_of(replica))
            sentinels, promoted = both(stale, current), Node("127.0.0.1", port_of(replica))
            await asyncio.to_thread(until_named, stale)
            assert await sentinels.latest(_LIMIT) == promoted
            for _ in range(20):
                assert await sentinels.master(_LIMIT) == promoted, "whichever Sentinel answers first"
        assert await sentinels.latest(_LIMIT) is None, "a Sentinel that is behind says nothing new"
        assert await sentinels.master(_LIMIT) == Node("127.0.0.1", port_of(other)), "and is better than none"
    with pytest.raises(OSError, match="no Sentinel names a master"):
        await sentinels.master(_LIMIT)


def until_named(url: str) -> None:
    """The Sentinel has heard from its master."""
    with client_of_sentinel(url) as watcher:
        until(lambda: watcher.sentinel_master("weir")["is_master"] and not watcher.sentinel_master("weir")["is_sdown"])
