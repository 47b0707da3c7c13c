"""What the checker knows of messages, queues and connections. Places are line numbers of the history."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Key = int | str  # what a connection subscribes to: a queue's number or a service's name


@dataclass
class Sent:
    """One attempt to send a message."""

    value: int
    called: int  # place in the history
    probe: bool
    result: str = "unknown"
    done: int | None = None
    first: int | None = None  # where it was delivered for the first time
    message: str = ""

    def confirmed_before(self, other: Sent) -> bool:
        return self.result == "ok" and self.done is not None and self.done < other.called


@dataclass
class Register:
    """Something that a queue has one of: the last confirmed value holds, or one whose write was not answered."""

    confirmed: Any
    unknown: set[Any] = field(default_factory=set)

    @property
    def possible(self) -> set[Any]:
        return {self.confirmed, *self.unknown}

    def settle(self, value: Any, result: str) -> None:
        if result == "ok":
            self.confirmed = value
        if result != "unknown":
            self.unknown.discard(value)


@dataclass
class Queue:
    number: int
    id: bytes
    sent: dict[int, Sent] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)  # message id → value
    acked: dict[str, int] = field(default_factory=dict)  # message id → where its ACK was answered OK
    registers: dict[str, Register] = field(default_factory=dict)
    deletes: dict[int, str] = field(default_factory=dict)  # DEL's op → its result
    deleted_by: set[int] = field(default_factory=set)  # connections
    exists: bool | None = None
    gone: bool = False  # a command was refused because the queue is gone
    made: bool = False  # by a NEW during the run

    def register(self, what: str) -> Register:
        return self.registers.setdefault(what, Register(""))

    @property
    def may_be_deleted(self) -> bool:
        return any(result != "refused" for result in self.deletes.values())


@dataclass
class Subscription:
    """What a connection knows about its subscription to a queue or a service."""

    began: int  # the first SUB or SUBS since the subscription last ended
    asked: int  # the last call of one, or the last answer
    open_calls: dict[int, int] = field(default_factory=dict)  # SUB and SUBS that are not answered OK: op → place
    believes: bool = False
    deleted: bool = False  # the connection heard DELD
    complete: bool = False  # ALLS came: the service has got what was waiting
    overlapping: int = 1  # SUBs that were under way together with the last one: each may bring the same message
    given: dict[str, list[int]] = field(default_factory=dict)  # message id → where it was delivered

    def call(self, op: int, place: int) -> None:
        """A SUB or SUBS is called."""
        self.overlapping = self.overlapping + 1 if self.open_calls else 1
        self.asked = self.open_calls[op] = place

    def gave_before(self, message: str) -> bool:
        """Whether the last SUBs have brought the message already, and none is under way that brings it again."""
        given = sum(place > self.asked for place in self.given.get(message, ()))
        return not self.open_calls and given >= self.overlapping


@dataclass
class Connection:
    number: int
    service: str
    is_open: bool = True
    alive: bool = False
    subscriptions: dict[Key, Subscription] = field(default_factory=dict)
    acked: set[str] = field(default_factory=set)
