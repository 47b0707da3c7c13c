"""Writes the queues of a service directly into the store of a `weir up`, because a million NEWs would take too long."""

import time

from weir.bench.service import Fill
from weir.bench.target import BenchError, Target
from weir.router.config import read_placement_key
from weir.router.store.bulk import bulk_queues
from weir.router.store.core import StoreConfig
from weir.router.store.records import Owner
from weir.router.store.store import Store

_CONNECTION = 1


def store_fill(target: Target) -> Fill:
    """Return a function that writes queues into the store of `target`, which must be a `weir up`."""
    url, key = target.redis_url, target.placement_key
    if url is None or key is None:
        raise BenchError("writing queues into the store needs --home of a running `weir up`")

    async def fill(service_id: bytes, count: int) -> None:
        day = int(time.time()) // 86400
        store = await Store.open(StoreConfig(url, read_placement_key(key)))
        try:
            taken = await store.services.takeover(service_id, _CONNECTION, day)
            async for _ in bulk_queues(
                store.core, count, day=day, owner=Owner(_CONNECTION, taken.epoch), service=service_id, secured=True
            ):
                pass
            await store.services.release_service(service_id, _CONNECTION, taken.epoch)
        finally:
            await store.close()

    return fill
