from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.redis.proxy import Proxy, proxy, server
from tests.router.fleet import Fleet, Queue
from weir.redis.embedded import Embedded
from weir.router.config import RouterConfig

__all__ = ["proxy", "server"]


@pytest.fixture
async def hasty(config: RouterConfig, proxy: Proxy, server: Embedded) -> AsyncIterator[Fleet]:
    """Two edges. The first gives Redis half a second to answer, and reaches it through a network that can fail."""
    redis = replace(config.redis, lease=60.0)
    fleet = Fleet(config)
    await fleet.add(redis=replace(redis, url=proxy.url, command_timeout=0.5))
    await fleet.add(redis=replace(redis, url=server.url))
    yield fleet
    await fleet.close()


@pytest.fixture
async def relay_queue(relay: Fleet) -> Queue:
    return await (await relay.client()).new("ed25519")
