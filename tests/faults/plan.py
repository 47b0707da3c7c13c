"""A seeded plan of faults: what is broken when, and for how long. The same seed gives the same plan.

Two faults may overlap, but a process is hit by one fault at a time, and so is Redis as a whole: a second Redis that
fails before the first is back may cost confirmed messages, and no durability promises otherwise.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

LEASE = 2.0  # seconds; short, so that a short run has edges that are stopped for several leases
EDGES = 2
KINDS = ("fsync", "replicated", "cluster")  # what holds the data, by seed
NODES = {"fsync": 1, "replicated": 2, "cluster": 3}
_PAUSE = (0.2, 1.6)  # seconds between the beginnings of two faults


@dataclass(frozen=True)
class Fault:
    at: float
    what: str
    target: int  # number of the edge or of the Redis node
    seconds: float = 0.0  # until it is mended
    step: float = 0.0  # seconds by which a clock is set forward, or back

    def __str__(self) -> str:
        length = f" for {self.seconds:g} s" if self.seconds else ""
        return f"{self.at:6.2f} s  {self.what} {self.target}{length}" + (f" by {self.step:+g} s" if self.step else "")


class _Kind(NamedTuple):
    weight: int
    victim: str  # faults with the same victim and target do not overlap
    seconds: tuple[float, ...] = (0.0,)
    steps: tuple[float, ...] = (0.0,)


# The times are around those at which something changes: commands fail after 1.5 s, leases are lost after 2 s.
_SHORT_AND_LONG = (0.3, 1.0, 1.8, 3.0, 5.0)
FAULTS = {
    "edge kill": _Kind(3, "edge", (0.1, 1.0, 3.0)),
    "edge stop": _Kind(6, "edge", (0.5, 1.8, 3.0, 5.0, 8.0)),
    "edge drain": _Kind(2, "edge", (0.1,)),
    "edge clock": _Kind(1, "edge clock", (0.0,), (-90.0, 90.0, 86400.0)),
    "redis kill": _Kind(4, "redis", (0.0, 0.5, 1.8, 3.0)),
    "redis stop": _Kind(3, "redis", (0.3, 1.8, 3.0)),
    "redis clock": _Kind(3, "redis", (0.0,), (-30.0, -5.0, 5.0, 30.0)),
    "redis line in": _Kind(2, "redis line", _SHORT_AND_LONG),
    "redis line out": _Kind(2, "redis line", _SHORT_AND_LONG),
    "redis line cut": _Kind(2, "redis line", _SHORT_AND_LONG),
    "redis line slow": _Kind(1, "redis line", _SHORT_AND_LONG),
    "client line in": _Kind(1, "client line", _SHORT_AND_LONG),
    "client line out": _Kind(1, "client line", _SHORT_AND_LONG),
    "client line cut": _Kind(1, "client line", _SHORT_AND_LONG),
    "client line slow": _Kind(1, "client line", _SHORT_AND_LONG),
}
_MENDING = 1.5  # seconds that Redis needs when its fault is over, until the next one may come
_FAIL_OVER = 6.0  # the same with Sentinel, which may have chosen another master


def kind_of(seed: int) -> str:
    return KINDS[seed % len(KINDS)]


def make_plan(seed: int, seconds: float, *, only: Collection[str] = (), clocks: bool = True) -> list[Fault]:
    """The faults of a run; `only` names the kinds that may be drawn.

    Without `clocks`, faults that need libfaketime are left out; the others stay the same.
    """
    rng = random.Random(f"plan {seed}")
    redis = kind_of(seed)
    names = [name for name in FAULTS if not only or name in only]
    weights = [FAULTS[name].weight for name in names]
    busy: dict[tuple[str, int], float] = {}
    faults = []
    at = rng.uniform(*_PAUSE)
    while at < seconds - 0.5:
        (name,) = rng.choices(names, weights)
        kind = FAULTS[name]
        target = rng.randrange(NODES[redis] if kind.victim == "redis" else EDGES)
        length = min(rng.choice(kind.seconds), round(seconds - at, 2))
        step = rng.choice(kind.steps)
        victim = (kind.victim, 0 if kind.victim == "redis" else target)
        if busy.get(victim, 0.0) <= at:
            faults.append(Fault(round(at, 2), name, target, length, step))
            busy[victim] = at + length + _mending(kind.victim, redis)
        at += rng.uniform(*_PAUSE)
    return [fault for fault in faults if clocks or not fault.what.endswith("clock")]


def _mending(victim: str, redis: str) -> float:
    if victim != "redis":
        return 0.5
    return _FAIL_OVER if redis == "replicated" else _MENDING


def describe(seed: int, faults: Iterable[Fault]) -> str:
    return "\n".join([f"seed {seed}: {kind_of(seed)}", *(f"  {fault}" for fault in faults)])
