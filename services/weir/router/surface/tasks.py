"""What an edge of the SMP router does beside the tasks of every edge (weir.runtime.tasks)."""

from __future__ import annotations

from typing import Any

from weir.router.surface.view import EdgeView
from weir.runtime import tasks
from weir.runtime.broadcast import Task


async def work(edge: EdgeView, task: Task) -> Any:
    """Return what JSON can hold. Every task may be repeated."""
    match task["do"]:
        case "clients":
            return [list(client) for client in edge.clients()]
        case "trace":
            return task["edge"] == edge.edge_id and edge.trace_session(task["client"], task["on"])
    return await tasks.work(edge, task)
