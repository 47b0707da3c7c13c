"""Unexpected errors: one line without ids, and a count."""

import asyncio
import gc
import logging

import pytest

from weir.telemetry.errors import ErrorCount, describe, log_lost_error, log_mistake

SECRET = "an id of a client"


def raised() -> KeyError:
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        return error


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_type_and_place() -> None:
    assert describe(raised()).startswith("KeyError in test_errors.py, line ")
    assert describe(OSError(SECRET)) == "OSError", "an error that was never raised has no place"


def test_a_mistake_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    log_mistake(logging.getLogger("weir"), "the job failed", raised())
    (line,) = lines(caplog)
    assert line.startswith("the job failed (KeyError in test_errors.py, line ")


async def test_a_task_and_a_callback_that_nobody_awaits(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_lost_error)

    async def fail() -> None:
        raise KeyError(SECRET)

    def call(_id: str) -> None:
        raise KeyError(SECRET)

    task = loop.create_task(fail())
    await asyncio.wait([task])
    del task
    gc.collect()
    loop.call_soon(call, SECRET)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(lines(caplog)) == 2
    for line, what in zip(lines(caplog), ("Task exception was never retrieved", "Exception in callback"), strict=True):
        assert line.startswith(what) and "(KeyError in test_errors.py, line " in line
        assert SECRET not in line and "\n" not in line


def test_all_errors_are_counted() -> None:
    count, logger = ErrorCount(), logging.getLogger("weir.some.module")
    logger.addHandler(count)
    try:
        logger.warning("not an error")
        logger.error("an error")
        logger.critical("another")
    finally:
        logger.removeHandler(count)
    assert count.by_logger == {"weir.some.module": 2}
