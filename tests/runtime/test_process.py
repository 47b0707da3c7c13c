"""An edge as a process: its loop logs an error that nobody awaits, in one line and without ids."""

import asyncio
import gc
import logging
import os
import signal

import pytest

from weir.runtime.process import run_until_stopped


class Edge:
    def reload_identity(self) -> None: ...
    async def suspend(self) -> None: ...
    async def drain(self) -> None: ...
    async def close(self) -> None: ...


async def test_a_task_that_fails_unseen(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise KeyError("an id of a client")

    async def start() -> Edge:
        task = asyncio.create_task(fail())
        await asyncio.wait([task])
        del task
        gc.collect()
        return Edge()

    assert await run_until_stopped(start(), lambda _: os.kill(os.getpid(), signal.SIGTERM)) == 0
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("Task exception was never retrieved (KeyError in test_process.py, line ")
