"""`weir bench memory`: the Redis memory of an idle queue and of a waiting message."""

import time
from dataclasses import dataclass

import redis
import uvloop

from weir.bench.clients import open_client, send_to_each
from weir.bench.created import Created
from weir.bench.target import BenchError, Target
from weir.crypto.keys import KeyType

_SETTLE = 1.0


@dataclass(frozen=True)
class MemoryOptions:
    target: Target
    queues: int = 20000
    messages: int = 2000
    size: int = 16000
    keys: KeyType = "x25519"


@dataclass(frozen=True)
class MemoryResult:
    queues: int
    messages: int
    redis_bytes_per_queue: float
    redis_bytes_per_message: float
    message_overhead: float  # memory beyond the message's size, as a fraction of the size


def run_memory(options: MemoryOptions) -> MemoryResult:
    result: MemoryResult = uvloop.run(_run(options))
    return result


def _redis_memory(url: str) -> int:
    time.sleep(_SETTLE)
    client = redis.Redis.from_url(url)
    try:
        return int(client.info("memory")["used_memory"])
    finally:
        client.close()


async def _run(options: MemoryOptions) -> MemoryResult:
    target = options.target
    if target.redis_url is None:
        raise BenchError("memory needs --home of a running `weir up`")
    async with Created(target) as created, await open_client(target) as client:
        # The first queues make Redis allocate memory that all later queues share: do not measure them.
        await created.queues(client, 100, options.keys)
        start = _redis_memory(target.redis_url)
        queues = await created.queues(client, options.queues, options.keys)
        idle = _redis_memory(target.redis_url)
        await send_to_each(target, queues[: options.messages], options.size)
        full = _redis_memory(target.redis_url)
    per_message = (full - idle) / options.messages
    return MemoryResult(
        options.queues, options.messages, (idle - start) / options.queues, per_message, per_message / options.size - 1
    )
