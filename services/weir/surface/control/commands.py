"""The form of a control port's command, and the commands that every edge has."""

from __future__ import annotations

import os
import typing
from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum
from typing import NamedTuple


class Role(Enum):
    """The rights of a session. Each role includes the ones before it."""

    NONE = 0
    USER = 1
    ADMIN = 2


class Refused(Exception):
    """A command ends with one line for the operator."""


class Command(NamedTuple):
    role: Role
    words: int
    """Number of arguments. The last one extends to the end of the line and may contain spaces."""
    run: Callable[[Role, list[str]], AsyncIterator[str]]
    """(role of the session, arguments) → lines of the answer"""


Commands = Mapping[str, Command]


class Life(typing.Protocol):
    """The part of an edge, or of all edges, that the control port can change."""

    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...
    async def save(self) -> None: ...


def life_commands(edge: Life, it_takes: str = "this edge takes") -> dict[str, Command]:
    """`suspend`, `resume` and `save`. `it_takes` says in the answers what `edge` is."""

    async def suspend(role: Role, arguments: list[str]) -> AsyncIterator[str]:
        await edge.suspend()
        yield f"ok, {it_takes} no new clients"

    async def resume(role: Role, arguments: list[str]) -> AsyncIterator[str]:
        try:
            await edge.resume()
        except OSError as error:
            raise Refused(f"cannot listen again: {os.strerror(error.errno or 0).lower()}") from None
        yield f"ok, {it_takes} new clients"

    async def save(role: Role, arguments: list[str]) -> AsyncIterator[str]:
        yield "saving server state..."
        await edge.save()
        yield "server state saved!"

    return {
        "suspend": Command(Role.ADMIN, 0, suspend),
        "resume": Command(Role.ADMIN, 0, resume),
        "save": Command(Role.ADMIN, 0, save),
    }
