"""The queries of docs/pipeline.md: each runs in Spark SQL and in DuckDB, and finds something."""

import re
from pathlib import Path
from typing import Any

import pytest

from weir.pipeline.tables.columns import GOLD

pytestmark = pytest.mark.spark

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text()
BLOCKS = re.findall(r"```(sql|spark|duckdb)\n(.*?)```", PAGE, re.DOTALL)
VIEWS = {table.name.removeprefix("gold/"): table.name for table in GOLD}


def queries(*kinds: str) -> list[Any]:
    return [pytest.param(text, id=f"{kind} {n}") for n, (kind, text) in enumerate(BLOCKS) if kind in kinds]


@pytest.fixture(scope="module")
def duckdb(store: Any) -> Any:
    import duckdb

    with duckdb.connect() as connection:
        for view, name in VIEWS.items():
            connection.register(view, store.open(name).to_pyarrow_dataset())
        yield connection


@pytest.mark.parametrize("query", queries("sql", "duckdb"))
def test_in_duckdb(duckdb: Any, query: str) -> None:
    assert duckdb.sql(query).to_arrow_table().num_rows


@pytest.mark.parametrize("query", queries("sql", "spark"))
def test_in_spark(spark: Any, store: Any, query: str) -> None:
    for view, name in VIEWS.items():
        spark.read.format("delta").load(store.location(name)).createOrReplaceTempView(view)
    assert spark.sql(query).collect()


def test_spark_shows_the_descriptions_of_columns(spark: Any, store: Any) -> None:
    described = spark.sql(f"DESCRIBE TABLE delta.`{store.location('gold/traffic')}`").collect()
    assert {row["col_name"]: row["comment"] for row in described}["messages_sent"] == "messages sent and stored"


def test_the_page_has_queries() -> None:
    assert {kind for kind, _ in BLOCKS} == {"sql", "spark", "duckdb"}
    assert len(BLOCKS) >= 10
