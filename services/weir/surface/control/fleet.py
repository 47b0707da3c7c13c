"""All edges of the fleet at the control port, as far as one edge can reach them.

An edge that does not answer is named in an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from weir.surface.control.commands import Refused

_TASK_LIMIT = 2.0  # seconds that the edges have to answer


class Answers(Protocol):
    @property
    def by_edge(self) -> Mapping[str, Any]: ...
    @property
    def missing(self) -> Collection[str]:
        """Live edges that did not answer in time."""


class Broadcast(Protocol):
    async def ask(self, limit: float, **task: Any) -> Answers: ...


class AllEdges:
    """A `Life` (commands.py): what is asked of one edge is asked of all."""

    def __init__(self, broadcast: Broadcast) -> None:
        self._broadcast = broadcast

    async def ask(self, **task: Any) -> Answers:
        return await self._broadcast.ask(_TASK_LIMIT, **task)

    async def suspend(self) -> None:
        require_all(await self.ask(do="suspend"))

    async def resume(self) -> None:
        answers = await self.ask(do="resume")
        for edge, problem in answers.by_edge.items():
            if problem is not None:
                raise Refused(f"edge {edge} cannot listen again: {problem}")
        require_all(answers)

    async def save(self) -> None:
        require_all(await self.ask(do="save"))


def require_all(answers: Answers) -> None:
    if answers.missing:
        raise Refused(f"no answer from edge {', '.join(sorted(answers.missing))}")
