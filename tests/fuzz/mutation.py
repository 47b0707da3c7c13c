"""Small random changes of valid bytes: deletions, insertions, copies and interesting values."""

import random

_INTERESTING = (0, 1, 0x20, 0x30, 0x31, 0x7F, 0xFF)


def mutate(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randint(0, len(changed))
        kind = rng.randrange(4)
        if kind == 0:
            del changed[at : at + rng.randint(1, 20)]
        elif kind == 1:
            changed[at:at] = rng.randbytes(rng.randint(1, 6))
        elif kind == 2:
            changed[at:at] = changed[rng.randint(0, len(changed)) :][:40]
        elif at < len(changed):
            changed[at] = rng.choice((*_INTERESTING, rng.randrange(256)))
    return bytes(changed)
