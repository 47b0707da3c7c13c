"""Describes the tables to people: on a terminal with the number of rows, and as a section of docs/pipeline.md."""

from collections.abc import Callable, Iterable, Iterator

from weir.pipeline.tables.declaration import Table


def text(tables: Iterable[Table], count: Callable[[str], int | None]) -> Iterator[str]:
    """Lines that describe tables. `count` returns how many rows a table has, or None if it is not there."""
    for table in tables:
        rows = count(table.name)
        yield f"{table.name}  ({'not made yet' if rows is None else f'{rows:,} rows'})"
        yield f"  {table.text}"
        yield f"  A row is {table.grain}. Partitioned by {' and '.join(table.partitions)}."
        width = max(len(column.name) for column in table.columns)
        kind = max(len(column.type) for column in table.columns if len(column.type) < 25)
        for column in table.columns:
            yield f"    {column.name:{width}}  {column.type:{kind}}  {column.text}"
        yield ""


def markdown(tables: Iterable[Table]) -> Iterator[str]:
    for table in tables:
        yield f"### {table.name}"
        yield ""
        yield f"{table.text} A row is {table.grain}."
        yield ""
        yield "| column | type | |"
        yield "|---|---|---|"
        for column in table.columns:
            yield f"| `{column.name}` | `{column.type}` | {column.text} |"
        yield ""
