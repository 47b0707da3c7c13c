"""The work of an operator that holds the Lease: a job that fails ends the run, so that a new one starts."""

import asyncio
from typing import Any

import pytest

from weir_operator import main
from weir_operator.metrics import JOB_FAILURES
from weir_operator.runtime import _end_after_failure
from weir_operator.settings import Settings


async def fail() -> None:
    raise KeyError("a mistake")


async def succeed() -> None: ...


async def test_a_job_that_fails_ends_the_run(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    before = JOB_FAILURES._value.get()
    task = asyncio.create_task(fail())
    await asyncio.wait([task])
    _end_after_failure(task, stop)
    assert stop.is_set()
    assert JOB_FAILURES._value.get() == before + 1
    assert "a background job failed" in caplog.text


async def test_a_job_that_ends_or_is_cancelled_does_not(caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    ended, cancelled = asyncio.create_task(succeed()), asyncio.create_task(asyncio.sleep(60))
    cancelled.cancel()
    await asyncio.wait([ended, cancelled])
    _end_after_failure(ended, stop)
    _end_after_failure(cancelled, stop)
    assert not stop.is_set() and not caplog.records


async def test_a_lease_that_ends_with_a_mistake_says_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends, and Kubernetes starts it again."""

    class Lease:
        async def acquire(self) -> None: ...

        async def hold(self) -> None:
            raise KeyError("a mistake")

    async def work(_runtime: object, _stop: asyncio.Event, holding: asyncio.Task[None]) -> None:
        await asyncio.wait([holding])

    monkeypatch.setattr(main, "_work", work)
    given: Any = Lease(), None, None
    assert await main._lead(*given, Settings(), asyncio.Event()) == 1
    assert "the lease is lost" in caplog.text and "KeyError" in caplog.text
