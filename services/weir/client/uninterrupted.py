"""Work that a cancellation must not cut in two, e.g. a NEW whose answer names a queue that is to be deleted later."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. A cancellation is raised when the work has ended; a second one is raised at once."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.gather(task, return_exceptions=True)
        raise
