"""Works directly on the store of a `weir up`, for what clients cannot do: create a million queues, remove a service.

A million NEWs would take too long, and the protocol has no command that removes a service.
"""

import time
from collections.abc import Awaitable, Callable, Iterable

from weir.bench.target import BenchError, Target
from weir.client.uninterrupted import uninterrupted
from weir.redis.settings import read_key
from weir.router.store.bulk import bulk_queues, delete_queues
from weir.router.store.core import StoreConfig
from weir.router.store.records import Owner
from weir.router.store.store import Store

Fill = Callable[[bytes, int, list[bytes]], Awaitable[None]]
"""(service id, count, list that gets the recipient ids) → writes queues into the store"""

_CONNECTION = 1
_PART = 1000  # queues that are written even if the bench is interrupted


def store_fill(target: Target) -> Fill:
    """Return a function that writes queues into the store of `target`, which must be a `weir up`."""
    config = _config(target)

    async def fill(service_id: bytes, count: int, made: list[bytes]) -> None:
        day = int(time.time()) // 86400
        store = await Store.open(config)
        try:
            taken = await store.services.takeover(service_id, _CONNECTION, day)
            owner = Owner(_CONNECTION, taken.epoch)

            async def write(part: int) -> None:
                queues = bulk_queues(store.core, part, day=day, owner=owner, service=service_id, secured=True)
                made.extend([queue.rcv_id async for queue in queues])

            for at in range(0, count, _PART):
                await uninterrupted(write(min(_PART, count - at)))
            await store.services.release_service(service_id, _CONNECTION, taken.epoch)
        finally:
            await store.close()

    return fill


async def open_store(target: Target) -> Store:
    """Open the store of `target` without an edge's leases."""
    return await Store.open(_config(target), edge=False)


async def remove(target: Target, rcv_ids: list[bytes], services: Iterable[bytes]) -> None:
    """Delete queues that `store_fill` has written, and services."""
    store = await open_store(target)
    try:
        await delete_queues(store.core, rcv_ids)
        for service_id in services:
            await store.registry.forget(service_id)
    finally:
        await store.close()


def _config(target: Target) -> StoreConfig:
    url, key = target.redis_url, target.placement_key
    if url is None or key is None:
        raise BenchError("writing queues into the store needs --home of a running `weir up`")
    return StoreConfig(url, read_key(key, "a placement key"))
