"""Errors that nobody expected: logged in one line, and counted.

The line has the error's type and place. The error's message stays out of the log: it may contain an id or a key of a
client. The count is that of all lines of severity ERROR, by logger, so that no error is logged and not counted.
"""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
_WORDS = re.compile(r"[\w .:]*")


def describe(error: BaseException) -> str:
    """Type and place."""
    places = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return f"{type(error).__name__}{where}"


def log_mistake(log: logging.Logger, what: str, error: BaseException) -> None:
    """Log an unexpected error. `what` is the program's own text: it says what failed, and what happens now."""
    log.error("%s (%s)", what, describe(error))
    log.debug("%s", what, exc_info=error)


def log_lost_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error that a task or a callback ended with, and that nobody awaited. For `loop.set_exception_handler`.

    The text of asyncio may contain the arguments of a callback, so it is cut at the first bracket.
    """
    found = _WORDS.match(context["message"])
    what = found[0].strip() if found else ""
    error = context.get("exception")
    if error is None:
        _log.error("%s", what)
    else:
        log_mistake(_log, what, error)


class ErrorCount(logging.Handler):
    """Counts lines of severity ERROR by logger."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.by_logger: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.by_logger[record.name] += 1


ERRORS = ErrorCount()
"""The count of this process, from `configure_logging` on."""
