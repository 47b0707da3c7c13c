"""Tables that Spark has made once, for all tests that read them."""

from typing import Any

import pytest

from tests.pipeline.tables.case import MONDAY, SUNDAY, Case


@pytest.fixture(scope="session")
def case() -> Case:
    return Case()


@pytest.fixture(scope="session")
def store(spark: Any, case: Case, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Tables made at once, of records that came in order."""
    from tests.pipeline.tables import lake
    from weir.pipeline.tables.build import update
    from weir.pipeline.tables.store import Store

    made = Store(str(tmp_path_factory.mktemp("tables")))
    lake.add_records(made, case.records)
    lake.add_trimmed(made, case.trimmed)
    lake.add_spans(made, case.spans)
    updated = update(made, lambda: spark, lambda text: None)
    assert updated.records == updated.gold == (SUNDAY, MONDAY)
    return made
