"""A seeded plan of faults: what is broken when, and for how long. The same seed gives the same plan.

Two faults may overlap, but a process is hit by one fault at a time, and so is Redis as a whole: a second Redis that
fails before the first is back may cost confirmed messages, and no durability promises otherwise.

A plan can be printed, and read again from what was printed: so a schedule that found something stays the same when
kinds of faults are added here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection
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


class Plan(NamedTuple):
    seed: int
    redis: str  # one of KINDS
    faults: tuple[Fault, ...]

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}: {self.redis}", *(f"  {fault}" for fault in self.faults)])


class _Kind(NamedTuple):
    weight: int
    victim: str  # faults with the same victim and target do not overlap
    seconds: tuple[float, ...] = (0.0,)
    steps: tuple[float, ...] = (0.0,)
    on: tuple[str, ...] = KINDS


# The times are around those at which something changes: commands fail after 1.5 s, leases are lost after 2 s.
_SHORT_AND_LONG = (0.3, 1.0, 1.8, 3.0, 5.0)
_NODES_LINE = (0.3, 1.8, 3.0, 5.0)
FAULTS = {
    "edge kill": _Kind(3, "edge", (0.1, 1.0, 3.0)),
    "edge stop": _Kind(6, "edge", (0.5, 1.8, 3.0, 5.0, 8.0)),
    "edge drain": _Kind(2, "edge", (0.1,)),
    "edge clock": _Kind(2, "edge clock", (0.0,), (-90.0, 90.0, 86400.0)),
    "redis kill": _Kind(4, "redis", (0.0, 0.5, 1.8, 3.0)),
    "redis stop": _Kind(3, "redis", (0.3, 1.8, 3.0)),
    "redis clock": _Kind(3, "redis", (0.0,), (-30.0, -5.0, 5.0, 30.0)),
    "redis cut": _Kind(2, "redis", _NODES_LINE),
    "redis apart": _Kind(2, "redis", _NODES_LINE, on=("replicated", "cluster")),
    "redis exile": _Kind(3, "redis", _NODES_LINE, on=("replicated",)),
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


def make_plan(seed: int, seconds: float, *, only: Collection[str] = (), clocks: bool = True) -> Plan:
    """The faults of a run; `only` names the kinds that may be drawn.

    Without `clocks`, faults that need libfaketime are left out; the others stay the same.
    """
    rng = random.Random(f"plan {seed}")
    redis = kind_of(seed)
    names = [name for name, kind in FAULTS.items() if redis in kind.on and (not only or name in only)]
    weights = [FAULTS[name].weight for name in names]
    busy: dict[tuple[str, int], float] = {}
    faults = []
    at = rng.uniform(*_PAUSE)
    while names and at < seconds - 0.5:
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
    return Plan(seed, redis, tuple(fault for fault in faults if clocks or not fault.what.endswith("clock")))


def _mending(victim: str, redis: str) -> float:
    if victim != "redis":
        return 0.5
    return _FAIL_OVER if redis == "replicated" else _MENDING


_HEAD = re.compile(r"seed (\d+): (\w+)")
_FAULT = re.compile(r"([\d.]+) s  (\D+) (\d+)(?: for ([\d.]+) s)?(?: by (\S+) s)?")


def read_plan(text: str) -> Plan:
    """A plan that was printed. Lines before it are comments."""
    lines = text.strip().splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("seed "))
    found = _HEAD.fullmatch(lines[head])
    assert found is not None, lines[head]
    return Plan(int(found[1]), found[2], tuple(map(_read_fault, lines[head + 1 :])))


def _read_fault(line: str) -> Fault:
    found = _FAULT.fullmatch(line.strip())
    assert found is not None and found[2] in FAULTS, line
    return Fault(float(found[1]), found[2], int(found[3]), float(found[4] or 0), float(found[5] or 0))
