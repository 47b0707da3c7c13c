"""Whatever ends a job of Spark is one line."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pipeline.conftest import SPARK
from weir.pipeline.errors import PipelineError
from weir.pipeline.failures import explain, spark_failures
from weir.pipeline.spark import OUT_OF_MEMORY, SparkOptions, spark_session

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


@pytest.fixture(scope="module")
def small() -> Iterator[Any]:
    with spark_session(SparkOptions(SPARK.tables, "local[1]", "512m", java_options=SPARK.java_options)) as session:
        yield session


@pytest.mark.spark
def test_a_mistake_in_a_query(spark: Any) -> None:
    with pytest.raises(PipelineError, match=r"^Spark failed: ") as error, spark_failures(spark, "T"):
        spark.sql("SELECT nothing FROM nowhere").collect()
    assert "\n" not in str(error.value)
