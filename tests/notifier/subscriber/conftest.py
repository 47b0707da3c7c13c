from collections.abc import AsyncIterator, Iterator

import pytest

from tests.notifier.subscriber.replicas import Replicas
from tests.router.conftest import config, fleet, identity, placement, redis
from tests.router.fleet import Fleet, Peer
from tests.support.redis import discard, start_server
from weir.redis.embedded import Embedded

__all__ = ["config", "fleet", "identity", "placement", "redis"]


@pytest.fixture(scope="session")
def state() -> Iterator[Embedded]:
    """The notification routers' Redis: tests stop it, and the SMP edges have another one."""
    server = start_server()
    yield server
    discard(server)


@pytest.fixture
async def replicas(state: Embedded) -> AsyncIterator[Replicas]:
    replicas = Replicas(state)
    yield replicas
    await replicas.close()


@pytest.fixture
async def sender(fleet: Fleet) -> Peer:
    """A client of the first edge, to send messages."""
    return await fleet.client()
