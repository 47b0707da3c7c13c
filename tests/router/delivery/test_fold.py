"""A fold to a client that reads slowly."""

import asyncio

from tests.router.fleet import Fleet
from tests.router.service import subs, until_alls
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import ids_hash
from weir.wire.smp.replies import OK, SOKS


async def test_a_fold_of_many_messages_to_a_slow_reader(fleet: Fleet, service: ServiceCredentials) -> None:
    one = await fleet.client(0, service=service)
    queues = await asyncio.gather(*(one.new() for _ in range(150)))
    await one.close()
    s = await fleet.client(1)
    assert set(map(type, await asyncio.gather(*(s.send(queue, bytes(15000)) for queue in queues)))) == {OK}
    two = await fleet.client(1, service=service)
    two.stop_reading()
    hash_ = ids_hash.of_ids(queue.rcv_id for queue in queues)
    answer = asyncio.create_task(subs(two, 150, hash_))
    await asyncio.sleep(0.5)
    client = next(c for c in fleet[1].router.clients.values() if c.outgoing.source is not None)
    assert client.outgoing.pending_bytes < 2 * fleet.config.transport.outgoing_bytes
    two.read_again()
    assert await answer == SOKS(150, hash_)
    assert len(await until_alls(two, queues)) == 150
