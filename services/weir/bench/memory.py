"""`weir bench memory`: what an idle queue and a waiting message cost Redis."""

import time
from dataclasses import dataclass

import redis
import uvloop

from weir.bench.lanes import Queue, open_client
from weir.bench.subscribe import create_queues
from weir.bench.target import BenchError, Target
from weir.client.smp import Request
from weir.crypto.keys import KeyType
from weir.wire.commands import SEND
from weir.wire.replies import OK

_SENDS = 32
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
    message_overhead: float  # as a share of the message's size


def run_memory(options: MemoryOptions) -> MemoryResult:
    result: MemoryResult = uvloop.run(_run(options))
    return result


def _used(url: str) -> int:
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
    async with await open_client(target) as client:
        await create_queues(target, client, 100, options.keys)  # what the first queues cost is everybody's
        start = _used(target.redis_url)
        queues = await create_queues(target, client, options.queues, options.keys)
        idle = _used(target.redis_url)
        await _send(options, queues[: options.messages])
        full = _used(target.redis_url)
    per_message = (full - idle) / options.messages
    return MemoryResult(
        options.queues, options.messages, (idle - start) / options.queues, per_message, per_message / options.size - 1
    )


async def _send(options: MemoryOptions, queues: list[Queue]) -> None:
    body = bytes(options.size)
    async with await open_client(options.target) as sender:
        for at in range(0, len(queues), _SENDS):
            requests = [Request(SEND(False, body), queue.snd_id) for queue in queues[at : at + _SENDS]]
            for answer in await sender.send_many(requests):
                if not isinstance(answer, OK):
                    raise BenchError(f"the router takes no message: {answer}")
