"""The observations of senders and receivers, written line by line so that kill -9 loses none, and what must hold.

T pair n a       a SEND is about to leave: number n, attempt a
O|Q|U pair n a   it was answered OK, QUOTA, or with an error that leaves open what became of it
S pair s         a SUB is about to leave: the pair's subscription s
M pair s id n a  a message came to it
A pair s id      its ACK was answered
X pair s id      its ACK was refused with NO_MSG
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

Attempt = tuple[int, int]  # number of the message, attempt to send it
QUOTA: Attempt = (-1, 0)  # the router's own message: the queue was full


class Writer:
    """One process's journal. A line is in the kernel when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: str, *fields: object) -> None:
        os.write(self._file, f"{kind} {' '.join(map(str, fields))}\n".encode())


@dataclass
class Received:
    subscription: int
    msg_id: str
    attempt: Attempt
    acknowledged: bool = False
    refused: bool = False


@dataclass
class Pair:
    """One sender and one receiver."""

    sent: dict[Attempt, str] = field(default_factory=dict)  # → T, O, Q or U
    received: list[Received] = field(default_factory=list)
    subscriptions: int = 0
    confirmed: int = 0  # numbers that were answered OK
    got: set[Attempt] = field(default_factory=set)

    def next_attempt(self) -> Attempt:
        """Where a new sender goes on."""
        n = self.confirmed
        return n, 1 + max((a for m, a in self.sent if m == n), default=-1)

    @property
    def missing(self) -> set[Attempt]:
        return {at for at, outcome in self.sent.items() if outcome == "O" and at not in self.got}

    def problems(self) -> list[str]:
        """Everything that must not have happened."""
        found = [f"lost: {at}" for at in sorted(self.missing)]
        ids: dict[Attempt, str] = {}
        acknowledged: set[str] = set()
        seen: dict[str, int] = {}  # message id → subscription it came to last
        first_of: dict[int, str] = {}
        newest = -1
        for message in self.received:
            at, msg_id, subscription = message.attempt, message.msg_id, message.subscription
            if self.sent.get(at) == "Q":
                found.append(f"refused with QUOTA and delivered: {at}")
            if at != QUOTA and ids.setdefault(at, msg_id) != msg_id:
                found.append(f"stored twice: {at}")
            if msg_id in acknowledged:
                found.append(f"delivered after its ACK was answered: {at}")
            if seen.get(msg_id) == subscription:
                found.append(f"delivered twice to one subscription: {at}")
            if msg_id in seen and subscription in first_of:
                found.append(f"delivered again, but not first: {at}")
            if msg_id not in seen:
                earlier = {m for (m, a), outcome in self.sent.items() if outcome == "O" and m < at[0]}
                if self.sent.get(at) == "O" and at[0] < newest:
                    found.append(f"out of order: {at} after {newest}")
                if len(earlier) and not earlier <= self._numbers_before(message):
                    found.append(f"out of order: {at} before an earlier one")
                if self.sent.get(at) == "O":
                    newest = at[0]
            seen[msg_id] = subscription
            first_of.setdefault(subscription, msg_id)
            if message.refused and self.sent.get(at) == "O":
                found.append(f"confirmed, delivered, and its ACK refused: {at}")
            elif message.acknowledged:
                acknowledged.add(msg_id)
        return found

    def _numbers_before(self, message: Received) -> set[int]:
        numbers: set[int] = set()
        for other in self.received:
            if other is message:
                break
            numbers.add(other.attempt[0])
        return numbers


class Journal:
    """Reads what the processes of a run have written so far."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[Path, int] = {}
        self.pairs: dict[int, Pair] = defaultdict(Pair)
        self.counts: Counter[str] = Counter()

    def update(self) -> None:
        for path in sorted(self._directory.glob("*.journal")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            for line in text[:whole].decode().splitlines():
                self._take(line.split())

    def _take(self, words: list[str]) -> None:
        kind, pair = words[0], self.pairs[int(words[1])]
        self.counts[kind] += 1
        if kind in "TOQU":
            at = (int(words[2]), int(words[3]))
            pair.sent[at] = kind
            if kind == "O":
                pair.confirmed = at[0] + 1
        elif kind == "S":
            pair.subscriptions = int(words[2]) + 1
        elif kind == "M":
            at = (int(words[4]), int(words[5]))
            pair.received.append(Received(int(words[2]), words[3], at))
            pair.got.add(at)
        else:
            message = next(message for message in reversed(pair.received) if message.msg_id == words[3])
            message.acknowledged = True
            message.refused = kind == "X"

    @property
    def confirmed(self) -> int:
        return sum(pair.confirmed for pair in self.pairs.values())

    @property
    def missing(self) -> int:
        return sum(len(pair.missing) for pair in self.pairs.values())

    def problems(self) -> list[str]:
        return [f"pair {n}: {problem}" for n, pair in sorted(self.pairs.items()) for problem in pair.problems()]
