"""`weir bench publickey`: the CPU time of X25519 and Ed25519, one at a time and many at once.

libsodium computes one at a time. `weir.crypto.multibuffer` computes many at once; its Python code is included. Without
its accelerator, `multibuffer` uses libsodium, too.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

from weir.crypto import multibuffer, sodium
from weir.crypto.keys import dh, generate

_KEYS = 64
_ROUNDS = 12


@dataclass(frozen=True)
class PublicKeyResult:
    lanes: int  # operations in one call: 8 with crypto_mb, 1 without
    x25519_us: float
    dh_us: float  # X25519 and HSalsa20: the key of a box
    dh_many_us: float
    ed25519_us: float
    ed25519_many_us: float


def run_public_keys() -> PublicKeyResult:
    pairs = _pairs()
    key, messages = generate("ed25519"), [os.urandom(100) for _ in range(_KEYS)]
    signed = [(sodium.ed25519_sign(key.private, message), message) for message in messages]
    return PublicKeyResult(
        multibuffer.lanes(),
        x25519_us(),
        _each_us(lambda: [dh(*pair) for pair in pairs]),
        _each_us(lambda: multibuffer.dh_many(pairs)),
        _each_us(lambda: [sodium.ed25519_verify(key.public, *pair) for pair in signed]),
        _each_us(lambda: multibuffer.verify_many(key.public, signed)),
    )


def x25519_us() -> float:
    """Return the CPU time of libsodium for one X25519. `weir bench sub` reports the cost of a SUB in this unit."""
    pairs = _pairs()
    return _each_us(lambda: [sodium.x25519(*pair) for pair in pairs])


def _pairs() -> list[tuple[bytes, bytes]]:
    return [(generate().public, generate().private) for _ in range(_KEYS)]


def _each_us(work: Callable[[], object]) -> float:
    """Return the CPU time of one operation. `work` does `_KEYS` operations; the fastest of some rounds counts."""
    rounds = []
    for _ in range(_ROUNDS):
        start = process_time()
        work()
        rounds.append(process_time() - start)
    return min(rounds) / _KEYS * 1e6
