"""Connecting to Redis: the topology that the URL names, and the durability that the nodes can keep.

This module is above the topologies, so that no topology imports another one.
"""

import asyncio

from weir.redis.durability import Durability, Mode, replicated, waitaof
from weir.redis.errors import StoreError
from weir.redis.partitions import Partitions
from weir.redis.scripts import Folders
from weir.redis.topology import OneMaster, Topology
from weir.redis.url import RedisUrl

_RETRY_DELAY, _ATTEMPT_LIMIT = 0.5, 5.0  # seconds


async def connect(
    url: RedisUrl,
    *,
    lua: Folders,
    deadline: float,
    mode: Mode,
    replicas: int,
    replication_limit: float,
    limit: float,
    patience: float,
    partitions: Partitions | None = None,
) -> Topology:
    """A connected topology. Raises OSError or StoreError.

    An attempt takes at most `limit` seconds. Attempts are repeated for up to `patience` seconds, because Redis may
    start after its client, or may be failing over.
    """
    now = asyncio.get_running_loop().time
    end = now() + patience
    while True:
        topology = make_topology(url, deadline=deadline, lua=lua, partitions=partitions)
        try:
            async with asyncio.timeout(min(limit, _ATTEMPT_LIMIT)):
                await topology.probe()
                topology.durability = await choose_durability(
                    topology, mode, replicas=replicas, replication_limit=replication_limit
                )
                await topology.open()
            return topology
        except BaseException as error:
            await topology.close()
            if not isinstance(error, OSError) or now() + _RETRY_DELAY > end:
                raise
        await asyncio.sleep(_RETRY_DELAY)


def make_topology(
    url: RedisUrl, *, deadline: float, lua: Folders = (), partitions: Partitions | None = None
) -> Topology:
    """A topology that is not connected yet. `lua` are the folders of the scripts that its connections load."""
    if url.kind == "cluster":
        # Imported here, because redis-py is slow to import and an edge on one master does not need it.
        from weir.redis.cluster import Cluster

        return Cluster(url, deadline=deadline, lua=lua, partitions=partitions)
    return OneMaster(url, deadline=deadline, lua=lua, partitions=partitions)


async def choose_durability(topology: Topology, mode: Mode, *, replicas: int, replication_limit: float) -> Durability:
    """How to wait for durable writes on these nodes. Raises StoreError when they cannot keep the promise."""
    if mode is Mode.EVERYSEC:
        return Durability()
    if mode is Mode.REPLICATED:
        return replicated(replicas, replication_limit)
    for node in await topology.masters():
        async with topology.admin(node) as client:
            appendonly = await client.config_get("append*")
        if appendonly.get("appendonly") != "yes":
            raise StoreError("durability fsync needs appendonly yes in Redis")
        if appendonly.get("appendfsync") != "always":
            if topology.version < (7, 2):
                raise StoreError("durability fsync needs appendfsync always in Redis")
            return waitaof(topology.deadline)
    return Durability(Mode.FSYNC)
