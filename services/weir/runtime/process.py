"""One edge as a process: start it, wait for a signal, drain it, close it.

SIGTERM and SIGINT stop the edge: it drains its clients and ends. A signal that arrives while the edge is still starting
(it may be waiting for Redis) ends the process at once. SIGHUP makes the edge use a new online certificate. After
SIGUSR1 the edge accepts no more clients. A supervisor that stops several edges sends SIGUSR1 to all of them before the
first SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import signal
import typing
from collections.abc import Awaitable, Callable
from typing import TypeVar

from weir.telemetry.errors import log_lost_error


class Running(typing.Protocol):
    def reload_identity(self) -> None: ...
    async def suspend(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


R = TypeVar("R", bound=Running)


def raise_descriptor_limit() -> None:
    """Allow this process as many file descriptors as the system lets it have: every client needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def run_until_stopped(
    start: Awaitable[R],
    on_ready: Callable[[R], None] | None = None,
    on_suspended: Callable[[], None] | None = None,
) -> int:
    """Run until SIGTERM or SIGINT. Return the exit code. Exceptions of `start` are the caller's."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_lost_error)
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
    suspend = asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, suspend.set)
    suspending = asyncio.create_task(_suspend_when(suspend, edge, on_suspended))
    try:
        if on_ready is not None:
            on_ready(edge)
        await stopping
        await edge.drain()
    finally:
        suspending.cancel()
        await edge.close()
    return 0


async def _suspend_when(told: asyncio.Event, edge: Running, on_suspended: Callable[[], None] | None) -> None:
    await told.wait()
    await edge.suspend()
    if on_suspended is not None:
        on_suspended()
