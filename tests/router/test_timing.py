"""The time of an AUTH error tells nothing: it takes the same operations whether the queue exists or not.

The operations that take time are counted: those of libsodium and OpenSSL, and the parsing of a queue's record. They are
counted for every pair of key types (the queue's and the one used). `weir bench timing` measures the time itself.
"""

import os
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from tests.router.fleet import Fleet, Peer, err
from tests.services.service import self_signed
from weir.bench.timing import PAIRS
from weir.crypto import multibuffer, sodium
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.router.store import packing
from weir.wire.errors import Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import Command
from weir.wire.smp.replies import OK

REPEATS = 3  # the first finds the queue's record in Redis, the next ones may find it in the edge's cache
LIBRARIES = (sodium.__file__, multibuffer.__file__)
PUBLIC_KEY = {"x25519", "box_key", "dh_many", "ed25519_verify", "verify_many", "Ed448PublicKey.verify"}


async def operations(peer: Peer, command: Command, entity_id: bytes, key: KeyPair) -> Counter[str]:
    """Count the operations of the edge and the client, which run in this process, for one command that is refused."""
    found = Counter[str]()

    def count(frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "call" and (code.co_filename in LIBRARIES or code is packing.parse_record.__code__):
            found[code.co_name] += 1
        elif event == "c_call" and (called.__name__ == "openssl_sha512" or "Ed448" in called.__qualname__):
            found[called.__qualname__] += 1

    sys.setprofile(count)
    try:
        assert await peer.do(command, entity_id, key) == err(Simple.AUTH)
    finally:
        sys.setprofile(None)
    return found


async def assert_same_operations(attacker: Peer, command: Command, entity_id: bytes, key: KeyPair) -> None:
    assert await attacker.do(command, os.urandom(24), key) == err(Simple.AUTH)  # the client makes its DH secret
    for _ in range(REPEATS):
        hit = await operations(attacker, command, entity_id, key)
        miss = await operations(attacker, command, os.urandom(24), key)
        assert hit == miss
        assert PUBLIC_KEY & hit.keys() and hit["parse_record"] == 1


@pytest.mark.parametrize(("queue_type", "used_type"), PAIRS)
@pytest.mark.parametrize("same_edge", [True, False], ids=["same edge", "other edge"])
async def test_auth_errors_take_the_same_operations(
    fleet: Fleet, queue_type: KeyType, used_type: KeyType, same_edge: bool
) -> None:
    r, s, attacker = await fleet.client(0), await fleet.client(0), await fleet.client(0 if same_edge else 1)
    queue = await r.new(queue_type, secure=True)
    assert await s.send(queue, b"hello") == OK()
    assert await r.sub(queue)
    key = generate(used_type)
    for command, entity_id in ((cmd.SUB(), queue.rcv_id), (cmd.SEND(False, b"hello"), queue.snd_id)):
        await assert_same_operations(attacker, command, entity_id, key)


@pytest.mark.parametrize("used_type", ["ed25519", "x25519"])
async def test_a_service_cannot_tell_either(fleet: Fleet, used_type: KeyType) -> None:
    """A service's signature is verified whether the queue exists or not."""
    r, attacker = await fleet.client(0), await fleet.client(0, service=self_signed())
    queue = await r.new()
    await assert_same_operations(attacker, cmd.SUB(), queue.rcv_id, generate(used_type))
