"""One edge as a process: start it, wait for a signal, drain it, close it.

SIGTERM and SIGINT stop the edge: it drains its clients and ends. A signal that arrives while the edge is still starting
(it may be waiting for Redis) ends the process at once. SIGHUP makes the edge use a new online certificate.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import typing
from collections.abc import Awaitable, Callable
from typing import TypeVar


class Running(typing.Protocol):
    def reload_identity(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


R = TypeVar("R", bound=Running)


def raise_descriptor_limit() -> None:
    """Allow this process as many file descriptors as the system lets it have: every client needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def run_until_stopped(start: Awaitable[R], on_ready: Callable[[R], None] | None = None) -> int:
    """Run until SIGTERM or SIGINT. Return the exit code. Exceptions of `start` are the caller's."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    # Without a handler, process 1 of a container would not receive these signals at all.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    starting, stopping = asyncio.ensure_future(start), asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await starting
        return 0
    edge = starting.result()
    loop.add_signal_handler(signal.SIGHUP, edge.reload_identity)
    try:
        if on_ready is not None:
            on_ready(edge)
        await stopping
        await edge.drain()
    finally:
        await edge.close()
    return 0
