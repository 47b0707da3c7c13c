"""At which address an SMP server is found. Real SMP edges answer."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest

from tests.notifier.subscriber.replicas import Replica, Replicas, until
from tests.router.fleet import Fleet
from weir.client.reconnecting import Pauses
from weir.client.smp import SmpClient
from weir.notifier.store.records import Fenced
from weir.notifier.subscriber.connector import Connector
from weir.notifier.subscriber.shared import Owned
from weir.transport.client import ConnectError
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.errors import BrokerErrorTag, HandshakeError


@pytest.fixture
async def replica(replicas: Replicas) -> Replica:
    replica = await replicas.add()
    await replica.subscriber._background.close()
    return replica


@pytest.fixture
def genuine(fleet: Fleet) -> ServerHost:
    address = SmpAddress.parse(fleet.address())
    assert address is not None
    return address.server_host


@pytest.fixture
async def silent() -> AsyncIterator[int]:
    """A port that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


async def connector(replica: Replica, *addresses: ServerHost) -> Connector:
    """The first address is recorded, the next one is the candidate."""
    for address in addresses:
        server_id = await replica.store.servers.ensure(address)
    epoch = await replica.store.servers.own(server_id)
    assert epoch is not None
    return Connector(replica.subscriber._shared, Owned(server_id, epoch, Pauses(0.01, 0.1)))


def at(server: ServerHost, port: int) -> ServerHost:
    return server._replace(port=b"%d" % port)


async def close(client: SmpClient) -> None:
    client.connection.abort()
    await client.closed.wait()


async def test_the_candidate_is_found_without_waiting_for_the_old_address(
    replica: Replica, genuine: ServerHost, silent: int
) -> None:
    found = await connector(replica, at(genuine, silent), genuine)
    async with asyncio.timeout(3):
        await close(await found.open(as_service=False))
    server = await found.refresh()
    assert server.address == genuine and server.candidate is None


async def test_a_candidate_that_comes_during_an_attempt(replica: Replica, genuine: ServerHost, silent: int) -> None:
    found = await connector(replica, at(genuine, silent))
    opening = asyncio.create_task(found.open(as_service=False))
    await asyncio.sleep(0.1)
    await replica.store.servers.ensure(genuine)
    found.moved()
    async with asyncio.timeout(3):
        await close(await opening)
    assert (await found.refresh()).address == genuine


async def test_a_silent_candidate_delays_nothing(replica: Replica, genuine: ServerHost, silent: int) -> None:
    found = await connector(replica, genuine, at(genuine, silent))
    async with asyncio.timeout(3):
        await close(await found.open(as_service=True))
    server = await found.refresh()
    assert server.address == genuine and server.candidate == at(genuine, silent), "it may answer one day"


async def test_another_identity_is_rejected(replica: Replica, genuine: ServerHost) -> None:
    """Neither address is this identity's."""
    false = genuine._replace(key_hash=os.urandom(32))
    found = await connector(replica, at(false, 1), false)
    with pytest.raises(ConnectError) as failure:
        await found.open(as_service=False)
    assert failure.value.error is BrokerErrorTag.NETWORK, "the recorded address has closed its port"
    assert (await found.refresh()).candidate is None
    alone = await connector(replica, false._replace(key_hash=os.urandom(32)))
    with pytest.raises(ConnectError) as failure:
        await alone.open(as_service=False)
    assert failure.value.error is HandshakeError.IDENTITY


async def test_a_private_candidate_is_rejected(replicas: Replicas, genuine: ServerHost) -> None:
    replica = await replicas.add(allow_local_servers=False)
    await replica.subscriber._background.close()
    public = genuine._replace(hosts=(b"nowhere.invalid",))
    found = await connector(replica, public, genuine)
    with pytest.raises(ConnectError):
        await found.open(as_service=False)
    assert (await found.refresh()).candidate is None


async def test_a_server_that_is_gone(replica: Replica) -> None:
    found = Connector(replica.subscriber._shared, Owned(os.urandom(24), 1, Pauses(0.01, 0.1)))
    with pytest.raises(Fenced):
        await found.open(as_service=False)


async def test_an_attempt_that_is_given_up_leaves_no_connection(
    fleet: Fleet, replica: Replica, genuine: ServerHost
) -> None:
    listener = fleet[0]._listener
    assert listener is not None
    found = await connector(replica, genuine)
    for pause in (0, 0.001, 0.002, 0.004, 0.008):
        opening = asyncio.create_task(found.open(as_service=True))
        await asyncio.sleep(pause)
        opening.cancel()
        for client in await asyncio.gather(opening, return_exceptions=True):
            if isinstance(client, SmpClient):
                await close(client)
    await until(lambda: not listener.connections and not listener.half_open)


async def test_own_servers_have_a_name(replica: Replica, genuine: ServerHost) -> None:
    found = await connector(replica, genuine)
    await found.refresh()
    assert found._owned.state.name == "127.0.0.1"
    other = await connector(replica, with_another_host(genuine))
    await other.refresh()
    assert other._owned.state.name == ""


def with_another_host(server: ServerHost) -> ServerHost:
    return server._replace(hosts=(b"smp.example",), key_hash=os.urandom(32))
