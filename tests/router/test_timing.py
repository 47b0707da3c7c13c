"""The time of an AUTH error tells nothing: the same whether the queue exists or not, for every pair of key types.

Measured as a ratio of first quartiles of interleaved commands in one run, so that what else the machine does falls on
both: on a busy one half of the commands may have waited for a core, and commands that alternate strictly can keep step
with the system's scheduler, so that one kind does all the waiting. So chance decides which comes first.
"""

import os
from random import shuffle
from statistics import quantiles
from time import perf_counter

import pytest

from tests.router.fleet import Fleet, Peer, err
from tests.services.service import self_signed
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.wire import commands as cmd
from weir.wire.commands import Command
from weir.wire.errors import Simple
from weir.wire.replies import OK

PAIRS: list[tuple[KeyType, KeyType]] = [
    ("ed25519", "ed25519"),
    ("ed25519", "x25519"),
    ("ed448", "ed25519"),
    ("ed448", "ed448"),
    ("ed448", "x25519"),
    ("x25519", "ed25519"),
    ("x25519", "x25519"),
]
REPEATS = 160
TOLERANCE = 0.3
RUNS = 3


async def ratio(peer: Peer, command: Command, existing: bytes, key: KeyPair) -> float:
    """The time for a queue that exists over the time for one that does not."""
    hits, misses = list[float](), list[float]()
    denied = err(Simple.AUTH)
    for n in range(REPEATS + 10):
        pair = [(hits, existing), (misses, os.urandom(24))]
        shuffle(pair)
        for times, entity_id in pair:
            start = perf_counter()
            assert await peer.do(command, entity_id, key) == denied
            if n >= 10:  # warm
                times.append(perf_counter() - start)
    return quantiles(hits)[0] / quantiles(misses)[0]


async def assert_same_time(attacker: Peer, command: Command, entity_id: bytes, key: KeyPair) -> None:
    """In the best of a few runs: a difference that is there shows in all of them."""
    ratios = []
    for _ in range(RUNS):
        ratios.append(await ratio(attacker, command, entity_id, key))
        if abs(1 - ratios[-1]) < TOLERANCE:
            return
    pytest.fail(f"{command}: {ratios}")


@pytest.mark.parametrize(("queue_type", "used_type"), PAIRS)
@pytest.mark.parametrize("cached", [True, False], ids=["credentials cached", "not cached"])
async def test_auth_errors_take_the_same_time(
    fleet: Fleet, queue_type: KeyType, used_type: KeyType, cached: bool
) -> None:
    r, s, attacker = await fleet.client(0), await fleet.client(0), await fleet.client(0 if cached else 1)
    queue = await r.new(queue_type, secure=True)
    assert await s.send(queue, b"hello") == OK()
    assert await r.sub(queue)
    key = generate(used_type)
    for command, entity_id in ((cmd.SUB(), queue.rcv_id), (cmd.SEND(False, b"hello"), queue.snd_id)):
        await assert_same_time(attacker, command, entity_id, key)


@pytest.mark.parametrize("used_type", ["ed25519", "x25519"])
async def test_a_service_cannot_tell_either(fleet: Fleet, used_type: KeyType) -> None:
    """Its signature is verified whether the queue exists or not."""
    r, attacker = await fleet.client(0), await fleet.client(0, service=self_signed())
    queue = await r.new()
    await assert_same_time(attacker, cmd.SUB(), queue.rcv_id, generate(used_type))
