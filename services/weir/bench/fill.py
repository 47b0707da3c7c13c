"""Many queues of a service, straight into the store of our own router: what NEW would do, without a million clients."""

import time

from weir.bench.service import Fill
from weir.bench.target import BenchError, Target
from weir.router.config import read_placement_key
from weir.store.bulk import bulk_queues
from weir.store.core import StoreConfig
from weir.store.records import Owner
from weir.store.store import Store

_CONNECTION = 1


def store_fill(target: Target) -> Fill:
    """Fills through the store; only a home has one."""
    url, key = target.redis_url, target.placement_key
    if url is None or key is None:
        raise BenchError("filling needs --home of a running `weir up`")

    async def fill(service_id: bytes, count: int) -> None:
        day = int(time.time()) // 86400
        store = await Store.open(StoreConfig(url, read_placement_key(key)))
        try:
            taken = await store.takeover(service_id, _CONNECTION, day)
            async for _ in bulk_queues(
                store, count, day=day, owner=Owner(_CONNECTION, taken.epoch), service=service_id, secured=True
            ):
                pass
            await store.release_service(service_id, _CONNECTION, taken.epoch)
        finally:
            await store.close()

    return fill
