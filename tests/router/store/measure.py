"""CPU of this process and of Redis for each of the store's calls.

Run it with `python -m tests.router.store.measure [server binary]`.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
import uvloop

from tests.router.store.harness import NOW, TODAY, TestEdge, open_edge
from tests.support.redis import client_of, discard, start_server
from weir.router.store.bulk import bulk_queues
from weir.router.store.records import Owner, QueueRecord


def _redis_cpu(client: "redis.Redis") -> float:
    info = client.info("cpu")
    which = "_main_thread" if "used_cpu_user_main_thread" in info else ""
    return float(info[f"used_cpu_user{which}"] + info[f"used_cpu_sys{which}"])


class _Batch:
    """Counts answers."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(self, _result: Any) -> None:
        self._left -= 1
        if self._left == 0:
            self.finished.set_result(None)


async def measure(
    name: str, client: "redis.Redis", count: int, call: Callable[[int, Callable[[Any], None]], None], size: int = 50
) -> None:
    """Calls in batches, as blocks of commands come."""
    client.config_resetstat()
    redis_before, cpu_before = _redis_cpu(client), time.process_time()
    for start in range(0, count, size):
        batch = _Batch(min(size, count - start))
        for n in range(start, min(start + size, count)):
            call(n, batch.done)
        await batch.finished
    cpu = (time.process_time() - cpu_before) / count * 1e6
    redis_cpu = (_redis_cpu(client) - redis_before) / count * 1e6
    shown = ", ".join(
        f"{key.removeprefix('cmdstat_')} {s['calls'] / count:.2f}×{s['usec_per_call']:.2f}"
        for key, s in client.info("commandstats").items()
        if s["calls"] > count / 20
    )
    print(f"{name:36} client {cpu:6.1f} µs  Redis {redis_cpu:6.1f} µs  {shown}")


async def main() -> None:
    server = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else None
    node = start_server(server)
    client = client_of(node)
    try:
        edge, other = await open_edge(node.url), await open_edge(node.url)
        await calls(edge, other, client)
        await edge.close()
        await other.close()
        client.flushall()
        edge = await open_edge(node.url)
        await memory(edge, client)
        await edge.close()
    finally:
        discard(node)


async def calls(edge: TestEdge, other: TestEdge, client: "redis.Redis") -> None:
    store = edge.store
    recs: list[QueueRecord] = [await edge.new(owner=Owner(1, 1)) for _ in range(500)]
    ids = [os.urandom(24) for _ in range(20000)]
    for size, count in ((100, 20000), (16122, 10000)):
        body = os.urandom(size)

        def send(n: int, done: Callable[[Any], None], body: bytes = body) -> None:
            store.messages.send(recs[n % 500], ids[n], NOW, False, body, TODAY, 0, None, b"", done)

        def ack(n: int, done: Callable[[Any], None]) -> None:
            store.messages.ack(recs[n % 500], 1, 1, ids[n], 0, TODAY, done)

        def cycle(n: int, done: Callable[[Any], None], body: bytes = body) -> None:
            store.messages.send(recs[n % 500], ids[n], NOW, False, body, TODAY, 0, None, b"", lambda _: ack(n, done))

        await measure(f"SEND+ACK {size} bytes, same edge", client, count, cycle)
        await measure(f"SEND {size} bytes, delivered", client, 500, send)
        await measure(f"ACK that empties, {size} bytes", client, 500, ack)

    def fetch(n: int, done: Callable[[Any], None]) -> None:
        store.lookups.fetch_rcv(recs[n % 500].rcv_id, done)

    def fetch_snd(n: int, done: Callable[[Any], None]) -> None:
        store.lookups.fetch_snd(recs[n % 500].snd_id, done)

    def sub(n: int, done: Callable[[Any], None]) -> None:
        store.subscriptions.sub(recs[n % 500], 1, 1, None, TODAY, 0, done)

    await measure("fetch_rcv", client, 20000, fetch)
    await measure("fetch_snd", client, 20000, fetch_snd)
    await measure("SUB", client, 20000, sub)

    # Across edges: the other edge's messages come by inbox, and this one reads their bodies and acknowledges.
    waiting: dict[bytes, Callable[[Any], None]] = {}
    by_id = {rec.rcv_id: rec for rec in recs}

    def on_event(event: Any) -> None:
        def got(_body: Any) -> None:
            store.messages.ack(by_id[event.rcv_id], 1, 1, event.entry.msg_id, 0, TODAY, waiting.pop(event.entry.msg_id))

        store.messages.body(event.rcv_id, event.entry.msg_id, got)

    store.on_event = on_event
    body = os.urandom(16122)

    def across(n: int, done: Callable[[Any], None]) -> None:
        waiting[ids[n]] = done
        other.store.messages.send(recs[n % 500], ids[n], NOW, False, body, TODAY, 0, None, b"", lambda _: None)

    def read_too(n: int, done: Callable[[Any], None]) -> None:
        def sent(_result: Any) -> None:
            store.messages.ack(recs[n % 500], 1, 1, ids[n], 0, TODAY, done)

        store.messages.send(recs[n % 500], ids[n], NOW, False, body, TODAY, 0, None, b"", sent)

    for size in (1, 10, 50):
        await measure(f"cycle 16122 bytes, same edge, by {size}", client, 5000, read_too, size)
        await measure(f"cycle 16122 bytes, across, by {size}", client, 5000, across, size)
    service = os.urandom(24)
    epoch = (await store.services.takeover(service, 1, 1)).epoch
    plain = [await edge.new(owner=Owner(1, 1)) for _ in range(5000)]
    await measure(
        "SUB, plain", client, 5000, lambda n, done: store.subscriptions.sub(plain[n], 1, 1, None, TODAY, 0, done)
    )
    await measure(
        "SUB that associates",
        client,
        5000,
        lambda n, done: store.subscriptions.sub(plain[n], 1, epoch, service, TODAY, 0, done),
    )
    await measure(
        "SUB of an associated queue",
        client,
        5000,
        lambda n, done: store.subscriptions.sub(plain[n], 1, epoch, service, TODAY, 0, done),
    )


async def memory(edge: TestEdge, client: "redis.Redis") -> None:
    for name, count, options in (
        ("plain", 20000, {}),
        ("subscribed, secured", 20000, {"owner": Owner(1, 1), "secured": True}),
        ("with a notifier", 20000, {"owner": Owner(1, 1), "secured": True, "notifier": True}),
    ):
        before = client.info("memory")["used_memory"]
        made = [pair async for pair in bulk_queues(edge.store.core, count, day=TODAY, **options)]
        used = client.info("memory")["used_memory"] - before
        print(f"{name:34} {used / len(made):6.0f} bytes per queue")
    recs = [await edge.new() for _ in range(2000)]
    before = client.info("memory")["used_memory"]
    body = os.urandom(16122)
    for rec in recs:
        for _ in range(3):
            await edge.send(rec, body=body)
    used = client.info("memory")["used_memory"] - before
    print(f"{'message of 16122 bytes':34} {used / 6000:6.0f} bytes ({used / 6000 / 16122 - 1:+.1%})")


if __name__ == "__main__":
    uvloop.run(main())
