"""Stores as edges use them, with their events in a list."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.notifier.store.harness import NtfEdge, open_edge
from tests.redis.proxy import proxy, server
from tests.support.redis import RedisServer, any_redis, redis_server, redis_servers
from tests.support.store_edge import opener

__all__ = ["any_redis", "proxy", "redis_server", "redis_servers", "server"]

OpenEdge = Callable[..., Awaitable[NtfEdge]]


@pytest.fixture
async def open_any(any_redis: RedisServer) -> AsyncIterator[OpenEdge]:
    """Opens edges on every kind of Redis in turn."""
    async for open_edges in opener(any_redis, open_edge):
        yield open_edges


@pytest.fixture
async def open_one(redis_server: RedisServer) -> AsyncIterator[OpenEdge]:
    """Opens edges on the bundled Valkey."""
    async for open_edges in opener(redis_server, open_edge):
        yield open_edges
