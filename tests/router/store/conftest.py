"""Stores as edges use them, with awaitable calls and their events in a list."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.redis.proxy import proxy, server
from tests.router.store.harness import PLACEMENT_KEY, TestEdge, open_edge
from tests.support.redis import RedisServer, any_redis, redis_server, redis_servers

__all__ = ["any_redis", "proxy", "redis_server", "redis_servers", "server"]

OpenEdge = Callable[..., Awaitable[TestEdge]]


async def _opener(server: RedisServer) -> AsyncIterator[OpenEdge]:
    opened: list[TestEdge] = []

    async def open_one(**settings: Any) -> TestEdge:
        edge = await open_edge(server.url, PLACEMENT_KEY, **settings)
        opened.append(edge)
        return edge

    yield open_one
    for edge in opened:
        await edge.close()


@pytest.fixture
async def open_any(any_redis: RedisServer) -> AsyncIterator[OpenEdge]:
    """Opens edges on every kind of Redis in turn."""
    async for opener in _opener(any_redis):
        yield opener


@pytest.fixture
async def open_one(redis_server: RedisServer) -> AsyncIterator[OpenEdge]:
    """Opens edges on the bundled Valkey."""
    async for opener in _opener(redis_server):
        yield opener
