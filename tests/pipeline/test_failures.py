"""Whatever ends a job of Spark is one line."""

import subprocess
import sys
from typing import Any

import pytest

from weir.pipeline.errors import PipelineError
from weir.pipeline.failures import explain, spark_failures
from weir.pipeline.spark import OUT_OF_MEMORY

_TRACE = "An error occurred while calling o1.save.\n: org.apache.spark.SparkException: Job aborted.\n\tat org.x\n"


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        (
            _TRACE + "Caused by: java.io.IOException: No space left on device\n",
            None,
            "no space is left on the disk of T",
        ),
        (_TRACE + "Caused by: java.lang.OutOfMemoryError: Java heap space", None, "give it more with --memory"),
        ("Py4JNetworkError: Answer from Java side is empty", OUT_OF_MEMORY, "give it more with --memory"),
        ("Py4JNetworkError: Answer from Java side is empty", 137, "has ended (exit code 137)"),
        ("Python worker exited unexpectedly (crashed)", None, "a worker of Spark was killed"),
        ("SparkException: Python worker failed to connect back.", None, "the machine has too much to do"),
        ("Caused by: java.nio.file.AccessDeniedException: T/x: Permission denied", None, "T: permission denied"),
        ("io.delta.exceptions.ConcurrentAppendException: [X] y", None, "another program has changed the tables in T"),
        (
            "STREAM FAILED\n  weir.pipeline.errors.PipelineError: Redis at h:1: it does not answer\n\tat org.x",
            None,
            "Redis at h:1: it does not answer",
        ),
        (_TRACE, None, "Spark failed: org.apache.spark.SparkException: Job aborted."),
        ("", None, "Spark failed: it gives no reason"),
    ],
)
def test_explanations(text: str, code: int | None, expected: str) -> None:
    found = explain(text, code, "T")
    assert expected in found
    assert "\n" not in found


@pytest.mark.spark
def test_a_mistake_in_a_query(spark: Any) -> None:
    with pytest.raises(PipelineError, match=r"^Spark failed: ") as error, spark_failures(spark, "T"):
        spark.sql("SELECT nothing FROM nowhere").collect()
    assert "\n" not in str(error.value)


_FILL_MEMORY = """
from weir.pipeline.errors import PipelineError
from weir.pipeline.failures import spark_failures
from weir.pipeline.spark import SparkOptions, spark_session
with spark_session(SparkOptions(master="local[1]", memory="512m")) as session:
    try:
        with spark_failures(session, "T"):
            session.sparkContext._gateway.new_array(session.sparkContext._jvm.long, 400_000_000)
    except PipelineError as error:
        print(error)
"""


@pytest.mark.spark
def test_out_of_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FILL_MEMORY], capture_output=True, text=True, timeout=500, check=False
    )
    assert (done.stdout, done.stderr) == ("Spark is out of memory: give it more with --memory\n", "")
