"""Rows for Spark: Arrow batches in the columns of a schema, and rows of a table that are written once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def to_arrow(rows: Iterable[Mapping[str, Any]], schema: Any) -> Any:
    """A batch of Arrow with the columns of `schema`. Maps become lists of pairs, as Arrow wants them."""
    import pyarrow as pa

    found = list(rows)
    arrays = [pa.array([_plain(row.get(field.name)) for row in found], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [(key, _plain(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [{key: _plain(each) for key, each in item.items()} for item in value]
    return value
