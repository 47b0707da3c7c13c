"""The owner of each SMP server: a function of the replicas and owners that the store reports.

One replica at a time owns an SMP server and has the session with it. All replicas see the same replicas and owners and
compute the same plan, so each replica acts on its own part of it and nobody has to coordinate.

- An owner that lives keeps its servers, as long as it has no more than its fair share. A server without an owner goes
  to the replica that ranks first for it (rendezvous hashing) and has fewer servers than its fair share.
- A replica that joins is counted after a while (`settle`). Until then, nothing moves. Then it gets servers only from
  replicas that have more than their new fair share: those servers for which the owner ranks lowest.
- A server that nobody has taken for a while (`patience`) is taken by the next replica in its ranking, in case the first
  one hangs or does not see it.

Replicas with different views can disagree for a moment. The store gives a server to one replica only, and the plan
settles when the views are the same again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import NamedTuple

Servers = Mapping[bytes, bytes | None]
"""Every known SMP server and its live owner."""


class View(NamedTuple):
    """The live replicas, with the seconds since they joined, and the owners, as the store reports them."""

    replicas: Mapping[bytes, float]
    owners: Servers


class Step(NamedTuple):
    """The servers that a replica takes now, and those that it hands over."""

    own: list[bytes]
    hand_over: list[bytes]


def score(server: bytes, replica: bytes) -> bytes:
    return blake2b(replica, key=server[:64], digest_size=8).digest()


def ranking(server: bytes, replicas: Collection[bytes]) -> list[bytes]:
    """The replicas in the order in which they should own the server."""
    return sorted(replicas, key=lambda replica: score(server, replica), reverse=True)


def plan(view: View, settle: float) -> dict[bytes, bytes]:
    """Who should own each server. Empty while no replica lives."""
    settled = [replica for replica, age in view.replicas.items() if age >= settle] or list(view.replicas)
    if not settled:
        return {}
    load = dict.fromkeys(view.replicas, 0)
    planned: dict[bytes, bytes] = {}
    for server, owner in view.owners.items():
        if owner in load:
            planned[server] = owner
            load[owner] += 1
    share = -(-len(view.owners) // len(settled))
    _take_excess(planned, load, share, settled)
    for server in sorted(view.owners):
        if server not in planned:
            ranked = ranking(server, settled)
            owner = next((replica for replica in ranked if load[replica] < share), ranked[0])
            planned[server] = owner
            load[owner] += 1
    return planned


def _take_excess(planned: dict[bytes, bytes], load: dict[bytes, int], share: int, settled: list[bytes]) -> None:
    """Take from each owner what it has above its share. A server for which the owner ranks low is taken first."""
    for owner in sorted(load):
        excess = load[owner] - share
        if excess <= 0:
            continue
        rivals = [replica for replica in settled if load[replica] < share]
        having = sorted(server for server, holder in planned.items() if holder == owner)
        having.sort(key=lambda server: sum(score(server, r) > score(server, owner) for r in rivals), reverse=True)
        for server in having[:excess]:
            del planned[server]
        load[owner] = share


class Ownership:
    """The decisions of one replica."""

    def __init__(self, replica: bytes, *, settle: float, patience: float) -> None:
        """Times are in seconds."""
        self._replica = replica
        self._settle = settle
        self._patience = patience
        self._vacant_since: dict[bytes, float] = {}

    def step(self, view: View, now: float) -> Step:
        if self._replica not in view.replicas:
            return Step([], [])
        planned = plan(view, self._settle)
        own, hand_over = [], []
        vacant = {server for server, owner in view.owners.items() if owner is None}
        self._vacant_since = {server: self._vacant_since.get(server, now) for server in vacant}
        for server, owner in view.owners.items():
            if owner is None:
                if planned.get(server) == self._replica or self._is_overdue(server, view, now):
                    own.append(server)
            elif owner == self._replica and planned[server] != owner:
                hand_over.append(server)
        return Step(own, hand_over)

    def _is_overdue(self, server: bytes, view: View, now: float) -> bool:
        """Whether all replicas before this one had their time to take the server."""
        place = ranking(server, view.replicas).index(self._replica)
        return now - self._vacant_since[server] >= self._patience * (place + 1)
