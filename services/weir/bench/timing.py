"""`weir bench timing`: whether the time of an AUTH error tells if a queue, a token or a subscription exists.

The bench sends commands with a wrong key to a queue that exists and to random ids, and compares the times. It does so
for every pair of key types (the queue's and the one used), from a client on the edge of the queue's owner and from one
on another edge, and for a service's session. On a notification router, it does the same with a token and a
subscription.

A result is the ratio of the first quartiles of commands that were sent in one run. The first quartile leaves out the
commands that waited for a core of a busy machine. The order within each pair of commands is random, because commands
that alternate strictly can fall into step with the kernel's scheduler. A ratio outside the tolerance is measured again:
a real difference shows every time.
"""

import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import shuffle
from statistics import quantiles
from time import perf_counter

import uvloop

from weir.bench.clients import Queue, describe, open_client
from weir.bench.created import Created
from weir.bench.cross import edges_of
from weir.bench.own_router import own_router
from weir.bench.target import BenchError, Target
from weir.client.ntf import NtfClient
from weir.client.smp import SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.transport.smp import ServiceCredentials
from weir.wire.address import ServerHost
from weir.wire.errors import Simple
from weir.wire.ntf.types import ERR as NTF_ERR
from weir.wire.ntf.types import (
    IDSUB,
    IDTKN,
    SCHK,
    SNEW,
    TCHK,
    TDEL,
    TNEW,
    TVFY,
    DeviceToken,
    NtfCommand,
    PushProvider,
    SmpQueueNtf,
)
from weir.wire.ntf.types import OK as NTF_OK
from weir.wire.smp.commands import SEND, SUB, Command, ServiceRole
from weir.wire.smp.replies import ERR, OK

PAIRS: tuple[tuple[KeyType, KeyType], ...] = (
    ("ed25519", "ed25519"),
    ("ed25519", "x25519"),
    ("ed448", "ed25519"),
    ("ed448", "ed448"),
    ("ed448", "x25519"),
    ("x25519", "ed25519"),
    ("x25519", "x25519"),
)
_WARM_UP = 10
_TOLERANCE = 0.3
_RUNS = 3
_DENIED = ERR(Simple.AUTH)
_NTF_DENIED = NTF_ERR(Simple.AUTH)
_SERVER = ServerHost((b"smp.invalid",), b"", bytes(32))


@dataclass(frozen=True)
class TimingResult:
    ratios: dict[str, float]  # the time for a queue that exists, over the time for one that does not

    @property
    def worst_ratio(self) -> float:
        return max(max(ratio, 1 / ratio) for ratio in self.ratios.values())


def run_timing(repeats: int = 160, pairs: Iterable[tuple[KeyType, KeyType]] = PAIRS) -> TimingResult:
    pairs = list(pairs)
    with own_router(2, arguments=("--ntf", "--ntf-port", "0")) as target:
        ratios = uvloop.run(_measure(target, repeats, pairs))
        assert target.ntf_address is not None
        return TimingResult(ratios | uvloop.run(_measure_ntf(target.ntf_address, repeats, pairs)))


async def _measure(target: Target, repeats: int, pairs: Iterable[tuple[KeyType, KeyType]]) -> dict[str, float]:
    ratios: dict[str, float] = {}
    owner = await open_client(target)
    neighbour, distant = await _client_on(target, owner, same=True), await _client_on(target, owner, same=False)
    service = await open_client(target, ServiceCredentials.self_signed(ServiceRole.MESSAGING, make_self_signed()))
    for queue_type, used_type in pairs:
        queue = await Created(target).queue(owner, queue_type)
        answer = await owner.send(SEND(False, b"hello"), queue.snd_id, queue.snd_key)
        if not isinstance(answer, OK):
            raise BenchError(f"SEND failed: {describe(answer)}")
        for place, attacker in (("same edge", neighbour), ("other edge", distant), ("service", service)):
            key = generate(used_type)
            for name, command, entity_id in _commands(queue):
                if attacker is service and name != "SUB":
                    continue
                ratio = await _settled_ratio(partial(_refused, attacker, command, key=key), entity_id, repeats)
                ratios[f"{name} {queue_type}/{used_type}, {place}"] = ratio
    for client in (owner, neighbour, distant, service):
        await client.close()
    return ratios


async def _measure_ntf(address: str, repeats: int, pairs: Iterable[tuple[KeyType, KeyType]]) -> dict[str, float]:
    ratios: dict[str, float] = {}
    async with await NtfClient.connect(address) as owner, await NtfClient.connect(address) as attacker:
        for token_type, used_type in pairs:
            if token_type == "ed448":
                continue  # its SNEW is larger than a block
            token_key, key, queue = generate(token_type), generate(used_type), SmpQueueNtf(_SERVER, os.urandom(24))
            device = DeviceToken(PushProvider.APNS_NULL, os.urandom(16))
            token = await owner.send(TNEW(device, token_key.spki, generate("x25519").public), b"", token_key)
            if not isinstance(token, IDTKN) or await owner.send(TVFY(b"any"), token.token_id, token_key) != NTF_OK():
                raise BenchError("a token cannot be registered")
            sub = await owner.send(SNEW(token.token_id, queue, generate("ed25519").pkcs8), b"", token_key)
            if not isinstance(sub, IDSUB):
                raise BenchError("a subscription cannot be made")
            for command, entity_id in ((TCHK(), token.token_id), (SCHK(), sub.sub_id)):
                refused = partial(_refused_ntf, attacker, command, key=key)
                ratio = await _settled_ratio(refused, entity_id, repeats)
                ratios[f"{type(command).__name__} {token_type}/{used_type}, notification router"] = ratio
            await owner.send(TDEL(), token.token_id, token_key)
    return ratios


def _commands(queue: Queue) -> list[tuple[str, Command, bytes]]:
    return [("SUB", SUB(), queue.rcv_id), ("SEND", SEND(False, b"hello"), queue.snd_id)]


async def _client_on(target: Target, owner: SmpClient, *, same: bool) -> SmpClient:
    """Connect until the kernel chooses the edge that is wanted."""
    port = target.address.effective_port
    for _ in range(64):
        client = await open_client(target)
        first, second = edges_of([owner, client], port, target.pids)
        if first and second and (first == second) == same:
            return client
        await client.close()
    raise BenchError("all connections are on one edge")


async def _refused(attacker: SmpClient, command: Command, entity_id: bytes, *, key: KeyPair) -> None:
    answer = await attacker.send(command, entity_id, key)
    if answer != _DENIED:
        raise BenchError(f"AUTH was expected, not {describe(answer)}")


async def _refused_ntf(attacker: NtfClient, command: NtfCommand, entity_id: bytes, *, key: KeyPair) -> None:
    answer = await attacker.send(command, entity_id, key)
    if answer != _NTF_DENIED:
        raise BenchError(f"AUTH was expected, not {type(answer).__name__}")


Refused = Callable[[bytes], Awaitable[None]]
"""Sends a command with a wrong key and this id, and expects AUTH."""


async def _settled_ratio(refused: Refused, entity_id: bytes, repeats: int) -> float:
    ratio = 0.0
    for _ in range(_RUNS):
        ratio = await _ratio(refused, entity_id, repeats)
        if abs(1 - ratio) < _TOLERANCE:
            break
    return ratio


async def _ratio(refused: Refused, entity_id: bytes, repeats: int) -> float:
    hits, misses = list[float](), list[float]()
    for number in range(_WARM_UP + repeats):
        pair = [(hits, entity_id), (misses, os.urandom(24))]
        shuffle(pair)
        for times, wanted in pair:
            began = perf_counter()
            await refused(wanted)
            if number >= _WARM_UP:
                times.append(perf_counter() - began)
    return quantiles(hits)[0] / quantiles(misses)[0]
