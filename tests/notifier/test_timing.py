"""The time of an AUTH error tells nothing: it takes the same operations whether the token or subscription exists.

The operations that take time are counted: those of libsodium and OpenSSL, and the parsing of records.
"""

import os
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from tests.notifier.router import Device, Router, err, smp_queue
from weir.bench.timing import PAIRS
from weir.crypto import multibuffer, sodium
from weir.crypto.keys import KeyPair, KeyType, generate
from weir.notifier.store import packing
from weir.wire.errors import Simple
from weir.wire.ntf.types import SCHK, SDEL, SNEW, TCHK, TDEL, NtfCommand

LIBRARIES = (sodium.__file__, multibuffer.__file__)
PARSERS = (packing.parse_token.__code__, packing.open_notifier_key.__code__)


async def operations(device: Device, command: NtfCommand, entity_id: bytes, key: KeyPair) -> Counter[str]:
    """What the router and the client, which run in this process, do for one command that is refused."""
    found = Counter[str]()

    def count(frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "call" and (code.co_filename in LIBRARIES or code in PARSERS):
            found[code.co_name] += 1
        elif event == "c_call" and (called.__name__ == "openssl_sha512" or "Ed448" in called.__qualname__):
            found[called.__qualname__] += 1

    sys.setprofile(count)
    try:
        assert await device.do(command, entity_id, key) == err(Simple.AUTH)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(("token_type", "used_type"), PAIRS)
async def test_behaviour_1_auth_errors_take_the_same_operations(
    router: Router, token_type: KeyType, used_type: KeyType
) -> None:
    token = await (await router.device()).activate(key_type="ed25519" if token_type == "ed448" else token_type)
    sub_id = await token.subscription()
    attacker, key = await router.device(), generate(used_type)
    commands: list[tuple[NtfCommand, bytes]] = [
        (TCHK(), token.id),
        (TDEL(), token.id),
        (SCHK(), sub_id),
        (SDEL(), sub_id),
    ]
    for command, entity_id in commands:
        await attacker.do(command, os.urandom(24), key)  # the client makes its DH secret
        hit = await operations(attacker, command, entity_id, key)
        assert hit["parse_token"] == 1
        assert hit == await operations(attacker, command, os.urandom(24), key)


@pytest.mark.parametrize("used_type", ["x25519", "ed25519"])
async def test_behaviour_1_snew_for_a_token_that_is_missing(router: Router, used_type: KeyType) -> None:
    token = await (await router.device()).activate()
    attacker, key, ntf_key = await router.device(), generate(used_type), generate("ed25519").pkcs8
    await attacker.do(SNEW(os.urandom(24), smp_queue(), ntf_key), b"", key)
    hit = await operations(attacker, SNEW(token.id, smp_queue(), ntf_key), b"", key)
    assert hit == await operations(attacker, SNEW(os.urandom(24), smp_queue(), ntf_key), b"", key)
