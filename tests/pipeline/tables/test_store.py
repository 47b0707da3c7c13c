"""Tables without Spark: made from the declaration, extended by a newer one, counted and read."""

from pathlib import Path

import pytest

from weir.pipeline.bronze import TABLES as BRONZE
from weir.pipeline.tables.columns import COMMANDS, TABLES

pytestmark = pytest.mark.spark


def test_a_table_has_the_declared_columns_with_their_descriptions(tmp_path: Path) -> None:
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    for table in (*TABLES.values(), *BRONZE.values()):
        store.create(table)
        made = store.open(table.name)
        assert {f.name: f.metadata["comment"] for f in made.schema().fields} == {c.name: c.text for c in table.columns}
        assert made.metadata().partition_columns == list(table.partitions)
        assert made.metadata().configuration["delta.dataSkippingNumIndexedCols"] == "0"


def test_a_column_of_a_newer_version_is_added_and_the_rows_stay(tmp_path: Path) -> None:
    from tests.pipeline.tables import lake, model
    from tests.pipeline.tables.fleet import records
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    older = COMMANDS._replace(columns=tuple(column for column in COMMANDS.columns if column.name != "outcome"))
    rows = model.tables(records(2))[COMMANDS.name]
    lake.append(store, older, rows)
    store.create(COMMANDS)
    assert store.count(COMMANDS.name) == len(rows)
    assert set(store.read(COMMANDS.name, ("outcome",)).column("outcome").to_pylist()) == {None}


def test_what_is_not_there_is_not_read(tmp_path: Path) -> None:
    from weir.pipeline.tables.store import Store

    store = Store(str(tmp_path))
    assert (store.open("gold/nothing"), store.count("gold/nothing"), store.read("gold/nothing", ("at",))) == (None,) * 3
    assert store.files("gold/nothing") == (-1, {})
