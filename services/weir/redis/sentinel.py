"""The master that Sentinel names.

Each fail-over has a number, the epoch, which is higher than those before. A Sentinel that is cut off from the others
does not hear of a fail-over and names the former master, with the older epoch. A lower epoch than one that was heard
before is therefore believed only if no Sentinel names a higher one.
"""

import asyncio
from typing import NamedTuple

from weir.redis.lookup import look_up
from weir.redis.url import Node, RedisUrl


class _Master(NamedTuple):
    epoch: int
    node: Node


class Sentinels:
    """The Sentinels of a URL."""

    def __init__(self, url: RedisUrl) -> None:
        self._url = url
        self._epoch = 0  # the highest that was heard

    async def master(self, limit: float) -> Node:
        """The master according to the first Sentinel that is up to date. Raises OSError if no Sentinel names one."""
        asked = [asyncio.ensure_future(self._ask(node, limit)) for node in self._url.nodes]
        best: _Master | None = None
        try:
            for answer in asyncio.as_completed(asked):
                found = await answer
                if found is not None and (best is None or found.epoch > best.epoch):
                    best = found
                if best is not None and best.epoch >= self._epoch:
                    break
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)
        if best is None:
            raise OSError("no Sentinel names a master")
        self._epoch = best.epoch
        return best.node

    async def latest(self, limit: float) -> Node | None:
        """The master of the latest fail-over that any Sentinel knows; None while no Sentinel is up to date."""
        answers = await asyncio.gather(*(self._ask(node, limit) for node in self._url.nodes))
        best = max((found for found in answers if found is not None), key=lambda found: found.epoch, default=None)
        if best is None or best.epoch < self._epoch:
            return None
        self._epoch = best.epoch
        return best.node

    async def _ask(self, sentinel: Node, limit: float) -> _Master | None:
        """None if the Sentinel cannot be asked, or names no master that works."""
        from redis.asyncio import Redis
        from redis.exceptions import RedisError

        try:
            await look_up(sentinel, limit)
            async with Redis(
                host=sentinel.host,
                port=sentinel.port,
                username=self._url.sentinel_username,
                password=self._url.sentinel_password,
                socket_timeout=limit,
                socket_connect_timeout=limit,
                ssl=self._url.tls,
            ) as client:
                state = await client.sentinel_master(self._url.master)
        except (RedisError, OSError, RuntimeError):  # uvloop's RuntimeError: as for `Topology.admin`
            return None
        if not isinstance(state, dict) or not state["is_master"] or state["is_sdown"] or state["is_odown"]:
            return None
        return _Master(state["config-epoch"], Node(str(state["ip"]), int(state["port"])))
