"""The memory that a queue and a message take in Redis."""

import os

import pytest

from tests.router.store.harness import TODAY, open_edge
from tests.support.redis import SERVERS, client_of, discard, kinds, start_server
from weir.router.store.bulk import bulk_queues
from weir.router.store.records import Owner


@pytest.mark.parametrize("kind", kinds(SERVERS))
async def test_an_idle_queue_and_a_message(kind: str) -> None:
    server = SERVERS[kind]
    if server is None:
        pytest.skip(f"{kind} is not installed")
    node = start_server(server)
    try:
        with client_of(node) as client:

            def used() -> int:
                return int(client.info("memory")["used_memory"])

            edge = await open_edge(node.url, lease=600.0)
            start = used()
            made = [
                pair async for pair in bulk_queues(edge.store.core, 20000, day=TODAY, owner=Owner(1, 1), secured=True)
            ]
            assert (used() - start) / 20000 <= 700
            p = edge.store.partition(made[0][0])
            assert client.object("encoding", b"{%d}:q:%b" % (p, made[0][0])) in (b"listpack", b"ziplist")
            start = used()
            body = os.urandom(16122)
            for rcv_id, *_ in made[:500]:
                rec = await edge.rcv(rcv_id)
                assert rec is not None
                for _ in range(2):
                    await edge.send(rec, body=body)
            assert (used() - start) / 1000 <= 16122 * 1.15
            await edge.close()
    finally:
        discard(node)
