"""Background jobs: none ends in silence."""

import asyncio
import logging

import pytest

from weir.redis.errors import Unavailable
from weir.runtime import supervisor as module
from weir.runtime.supervisor import Supervisor, pause_after


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.004)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize(("failures", "pause"), [(1, 1.0), (2, 2.0), (5, 16.0), (7, 60.0), (10_000, 60.0)])
def test_pauses_grow(monkeypatch: pytest.MonkeyPatch, failures: int, pause: float) -> None:
    monkeypatch.undo()
    assert pause_after(failures) == pause


async def test_a_job_that_fails_is_logged_in_one_line_and_starts_again(caplog: pytest.LogCaptureFixture) -> None:
    runs, third = 0, asyncio.Event()

    async def job() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise KeyError("an id of a client")
        third.set()
        await asyncio.Event().wait()

    supervisor = Supervisor()
    supervisor.run("the job", job)
    await asyncio.wait_for(third.wait(), 5)
    await supervisor.close()
    lines = errors(caplog)
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("the job failed and starts again in ") and "KeyError in test_supervisor.py, line" in line
        assert "an id of a client" not in line and "\n" not in line


async def test_a_job_that_ends_starts_again_as_well(caplog: pytest.LogCaptureFixture) -> None:
    runs: asyncio.Queue[None] = asyncio.Queue()

    async def job() -> None:
        runs.put_nowait(None)

    supervisor = Supervisor()
    supervisor.run("the job", job)
    for _ in range(3):
        await asyncio.wait_for(runs.get(), 5)
    await supervisor.close()
    assert "it ended" in errors(caplog)[0]


async def test_an_outage_of_redis_is_not_logged_by_every_job(caplog: pytest.LogCaptureFixture) -> None:
    rounds: asyncio.Queue[None] = asyncio.Queue()

    async def job() -> None:
        rounds.put_nowait(None)
        raise Unavailable("away")

    supervisor = Supervisor()
    supervisor.every("the job", 0.001, job)
    for _ in range(5):
        await asyncio.wait_for(rounds.get(), 5)
    await supervisor.close()
    assert errors(caplog) == []


async def test_periodic_jobs_continue_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    rounds: asyncio.Queue[None] = asyncio.Queue()

    async def job() -> None:
        rounds.put_nowait(None)
        raise RuntimeError

    supervisor = Supervisor()
    supervisor.every("the job", 3600.0, job, at_once=True)
    for _ in range(3):
        await asyncio.wait_for(rounds.get(), 5)
    await supervisor.close()
    assert len(errors(caplog)) >= 2


async def test_close_ends_every_job() -> None:
    ended = []

    async def job() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    supervisor = Supervisor()
    supervisor.run("one", job)
    supervisor.run("other", job)
    await asyncio.sleep(0)
    await supervisor.close()
    await supervisor.close()
    assert ended == [True, True]
