"""The cost of devices: TNEW and TVFY, and SNEW, in commands for each second of CPU time of the router and its Redis.

The tokens are of the null provider, to which nothing is pushed. The SMP server of the subscriptions is refused, because
its address is local, so nothing is subscribed to meanwhile.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from weir.bench.clients import describe
from weir.bench.own_router import own_ntf_router
from weir.bench.system import spent, usage
from weir.bench.target import BenchError, NtfTarget
from weir.client.ntf import NtfClient
from weir.crypto.keys import KeyPair, generate
from weir.wire.address import ServerHost
from weir.wire.ntf.types import IDSUB, IDTKN, OK, SNEW, TNEW, TVFY, DeviceToken, PushProvider, SmpQueueNtf

_SERVER = ServerHost((b"127.0.0.1",), b"1", bytes(32))
_LIMIT = 60.0


@dataclass(frozen=True)
class CommandsOptions:
    tokens: int = 2000
    subscriptions: int = 10000
    connections: int = 16  # a connection's commands are executed one block after the other
    window: int = 4  # tokens or subscriptions under way on each


@dataclass(frozen=True)
class CommandsResult:
    tokens: int
    tokens_per_cpu_s: float  # TNEW and TVFY
    subscriptions: int
    subscriptions_per_cpu_s: float  # SNEW


@dataclass(frozen=True)
class _Token:
    id: bytes
    key: KeyPair


def run_commands(options: CommandsOptions) -> CommandsResult:
    import uvloop

    with own_ntf_router(1, {"WEIR_SUBSCRIBER_ALLOW_LOCAL_SERVERS": "off"}) as ntf:
        result: CommandsResult = uvloop.run(_run(options, ntf))
        return result


async def _run(options: CommandsOptions, ntf: NtfTarget) -> CommandsResult:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(await NtfClient.connect(ntf.address, reply_timeout=_LIMIT))
            for _ in range(options.connections)
        ]
        tokens: list[_Token] = []

        async def register(client: NtfClient) -> None:
            tokens.append(await _register(client))

        async def subscribe(client: NtfClient) -> None:
            await _subscribe(client, random.choice(tokens))

        workers = clients * options.window
        tokens_s = await _cpu_seconds(ntf, workers, options.tokens, register)
        subscriptions_s = await _cpu_seconds(ntf, workers, options.subscriptions, subscribe)
    return CommandsResult(
        options.tokens, options.tokens / tokens_s, options.subscriptions, options.subscriptions / subscriptions_s
    )


async def _cpu_seconds(
    ntf: NtfTarget, workers: list[NtfClient], count: int, work: Callable[[NtfClient], Awaitable[None]]
) -> float:
    left = count

    async def repeat(client: NtfClient) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await work(client)

    before = usage(ntf.pids, ntf.redis_url)
    await asyncio.gather(*map(repeat, workers))
    used = spent(before, usage(ntf.pids, ntf.redis_url))
    return used.edges_s + used.redis_s


async def _register(client: NtfClient) -> _Token:
    key, dh_key = generate("x25519"), generate("x25519")
    ids = await client.send(
        TNEW(DeviceToken(PushProvider.APNS_NULL, os.urandom(32)), key.spki, dh_key.public), b"", key
    )
    if not isinstance(ids, IDTKN):
        raise BenchError(f"TNEW failed: {describe(ids)}")
    if await client.send(TVFY(b"any"), ids.token_id, key) != OK():
        raise BenchError("TVFY failed")
    return _Token(ids.token_id, key)


async def _subscribe(client: NtfClient, token: _Token) -> None:
    queue = SmpQueueNtf(_SERVER, os.urandom(24))
    reply = await client.send(SNEW(token.id, queue, generate("ed25519").pkcs8), b"", token.key)
    if not isinstance(reply, IDSUB):
        raise BenchError(f"SNEW failed: {describe(reply)}")
