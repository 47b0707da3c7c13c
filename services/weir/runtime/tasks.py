"""The tasks that every edge does when a control port, a page or the metrics ask all edges (broadcast.py)."""

from __future__ import annotations

import os
from typing import Protocol

from weir.runtime.broadcast import Task


class Edge(Protocol):
    async def report(self) -> None: ...
    async def save(self) -> None: ...
    async def suspend(self) -> None: ...
    async def resume(self) -> None: ...


async def work(edge: Edge, task: Task) -> str | None:
    """Return why the task could not be done. Every task may be repeated."""
    match task["do"]:
        case "report":
            await edge.report()
        case "save":
            await edge.save()
        case "suspend":
            await edge.suspend()
        case "resume":
            try:
                await edge.resume()
            except OSError as error:
                return os.strerror(error.errno or 0).lower()
    return None
