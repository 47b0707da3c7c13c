"""One Spark session for all tests that need one. Such tests have the mark `spark` and import pyspark late.

The JVM compiles little and collects garbage in one thread: that starts faster, and the tests' tables are small.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.redis import any_redis, redis_server, redis_servers
from weir.pipeline.spark import SparkOptions, spark_session

__all__ = ["any_redis", "redis_server", "redis_servers"]

_LIMIT = 600  # seconds; a session starts in 7, on a machine under load in a minute
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK = SparkOptions(master="local[2]", java_options=QUICK_JAVA, settings={"spark.sql.shuffle.partitions": "1"})


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_LIMIT))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    with spark_session(SPARK) as session:
        yield session
