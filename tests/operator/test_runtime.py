"""The work of an operator that holds the Lease: a job that fails ends the run, so that a new one starts."""

import asyncio

import pytest

from weir_operator.runtime import _end_after_failure


async def fail() -> None:
    raise KeyError("a mistake")


async def succeed() -> None: ...


async def test_a_job_that_fails_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    _end_after_failure(task, stop)
    assert stop.is_set()
    assert "a background job failed" in caplog.text


async def test_a_job_that_ends_or_is_cancelled_does_not(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    ended, cancelled = asyncio.create_task(succeed()), asyncio.create_task(asyncio.sleep(60))
    cancelled.cancel()
    await asyncio.wait([ended, cancelled])
    _end_after_failure(ended, stop)
    _end_after_failure(cancelled, stop)
    assert not stop.is_set() and not caplog.records
