"""Spark sessions: they know Delta Lake, say nothing, and leave nothing behind."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark


def test_a_session_writes_and_reads_delta(spark: Any, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.range(10).write.format("delta").save(table)
    assert spark.read.format("delta").load(table).count() == 10
