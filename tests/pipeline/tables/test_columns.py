"""The declaration of the tables: it names what the routers publish, and every column says something."""

import pytest

from weir.pipeline.tables import columns
from weir.pipeline.tables.declaration import Table
from weir.telemetry.rollups.fields import EVENTS, GAUGES, HISTOGRAMS

TABLES = pytest.mark.parametrize("table", columns.TABLES.values(), ids=columns.TABLES)


@TABLES
def test_a_table_has_a_key_of_its_columns_and_describes_each(table: Table) -> None:
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names)
    assert "day" in table.names
    assert table.text.endswith(".")
    for column in table.columns:
        assert column.text
        assert not column.text.endswith(".")


@TABLES
def test_numbers_of_gold_are_made_of_columns_of_silver(table: Table) -> None:
    there = {*columns.EDGE_MINUTES.names, "reported"}
    assert {column.of for column in table.columns if column.how} <= there


def test_silver_has_every_gauge_and_every_histogram_and_the_events_are_declared() -> None:
    names = set(columns.EDGE_MINUTES.names)
    for declared in (*GAUGES.values(), *HISTOGRAMS.values()):
        assert declared.keys() <= names
    assert set(columns.EVENT_COLUMNS.values()) <= EVENTS["smp"].keys() | EVENTS["ntf"].keys()


def test_numbers_of_the_fleet_are_never_added_up() -> None:
    for table in columns.GOLD:
        for column in table.columns:
            if column.of in columns.GAUGE_COLUMNS:
                assert columns.GAUGE_COLUMNS[column.of].fleet == (column.how in ("last", "most")), column
