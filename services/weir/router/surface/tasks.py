"""The tasks that a control port, a page or the metrics give to all edges (weir.runtime.broadcast)."""

from __future__ import annotations

import os
from typing import Any

from weir.router.surface.view import EdgeView
from weir.runtime.broadcast import Task


async def work(edge: EdgeView, task: Task) -> Any:
    """Return what JSON can hold. Every task may be repeated."""
    match task["do"]:
        case "report":
            await edge.report()
        case "save":
            await edge.save()
        case "clients":
            return [list(client) for client in edge.clients()]
        case "trace":
            return task["edge"] == edge.edge_id and edge.trace_session(task["client"], task["on"])
        case "suspend":
            await edge.suspend()
        case "resume":
            try:
                await edge.resume()
            except OSError as error:
                return os.strerror(error.errno or 0).lower()
    return None
