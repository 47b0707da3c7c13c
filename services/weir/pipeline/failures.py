"""One line about whatever ends a job of Spark."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Final

from weir.pipeline.errors import PipelineError
from weir.pipeline.spark import OUT_OF_MEMORY

_OWN: Final = re.compile(r"weir\.pipeline\.errors\.PipelineError: (.+)")
_MEMORY: Final = "Spark is out of memory: give it more with --memory"
_MEANINGS: Final = (
    (r"No space left on device|Disk quota exceeded", "no space is left on the disk of {place}, or of temporary files"),
    (r"java\.lang\.OutOfMemoryError|Cannot allocate memory", _MEMORY),
    (
        r"Python worker exited unexpectedly",
        "a worker of Spark was killed, perhaps because the machine is out of memory",
    ),
    (
        r"Python worker failed to connect back",
        "a worker of Spark did not start in time: the machine has too much to do. Nothing is lost; try again",
    ),
    (r"Read-only file system", "{place}: read-only file system"),
    (r"Permission denied|AccessDenied|Forbidden", "{place}: permission denied"),
    (r"Concurrent\w*Exception|DELTA_CONCURRENT", "another program has changed the tables in {place} meanwhile"),
)
_CAUSE: Final = re.compile(r"^(?:Caused by: |: )?((?:[\w$]+\.)+[\w$]*(?:Exception|Error): .+)$", re.MULTILINE)
_LONGEST: Final = 300


@contextlib.contextmanager
def spark_failures(session: Any, place: str) -> Iterator[None]:
    """Raise what Spark raises as PipelineError. `place` is where the tables are."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException, ConnectionError) as error:
        raise PipelineError(explain(str(error), exit_code(session), place)) from None


def exit_code(session: Any) -> int | None:
    """The exit code of Spark's JVM; None while it runs. Its last error may be seen before it has ended."""
    process = session.sparkContext._gateway.proc if session.sparkContext._gateway is not None else None
    if process is None:
        return None
    with contextlib.suppress(Exception):
        session.sparkContext._jvm.System.nanoTime()
        return None
    code: int = process.wait()
    return code


def explain(text: str, code: int | None, place: str) -> str:
    """Say in one line why Spark failed. `text` is its error, `code` the exit code of its JVM."""
    if own := _OWN.findall(text):
        line: str = own[-1]
        return line
    if code == OUT_OF_MEMORY:
        return _MEMORY
    for pattern, meaning in _MEANINGS:
        if re.search(pattern, text):
            return meaning.format(place=place)
    if code is not None:
        return f"Spark's process has ended (exit code {code}); --spark-log FILE keeps its log"
    causes = _CAUSE.findall(text) or text.strip().splitlines() or ["it gives no reason"]
    return f"Spark failed: {causes[-1][:_LONGEST]} (--spark-log FILE keeps its log)"
