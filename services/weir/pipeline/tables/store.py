"""The Delta tables of a directory, without Spark: created, listed, read and cleaned by the library `deltalake`.

A look into a table's log takes milliseconds here and seconds in Spark, so a run that finds nothing to do never starts
Spark. Tables are created here from their declaration, with the comments of their columns.

Delta's log would keep the lowest and highest value of each column of each file, also of files that are long deleted.
`delta.dataSkippingNumIndexedCols = 0` keeps all values out of it: queries find their files by day.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, Field, PostCommitHookProperties, Schema, write_deltalake
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType

from weir.pipeline.tables.declaration import Table

PROPERTIES: Final = {
    "delta.dataSkippingNumIndexedCols": "0",
    "delta.enableDeletionVectors": "false",
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 hours",
}

# Spark writes the checkpoints of its own tables, with what its streams have stored there.
_NO_HOOKS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


class Store:
    """`root` is a directory, or the address of one in a bucket, as Spark writes it: s3a://bucket/path."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") if "://" in root else os.path.abspath(root)

    def location(self, name: str) -> str:
        """Where Spark finds a table."""
        return f"{self.root}/{name}"

    def _uri(self, name: str) -> str:
        return self.location(name).replace("s3a://", "s3://", 1)

    def open(self, name: str) -> Any | None:
        """The table as it is now. None: there is no such table."""
        uri = self._uri(name)
        return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None

    def create(self, table: Table) -> None:
        """Create the table, or add the columns that a newer version of Weir has declared."""
        existing = self.open(table.name)
        if existing is None:
            DeltaTable.create(
                self._uri(table.name),
                schema=Schema([_field(column.name, column.type, column.text) for column in table.columns]),
                partition_by=list(table.partitions),
                name=table.name,
                description=table.text,
                configuration=PROPERTIES,
            )
            return
        there = {field.name for field in existing.schema().fields}
        new = [_field(column.name, column.type, column.text) for column in table.columns if column.name not in there]
        if new:
            existing.alter.add_columns(new)

    def files(self, name: str) -> tuple[int, dict[date, list[str]]]:
        """The table's version, and its files by their day. Without a table the version is −1."""
        table = self.open(name)
        if table is None:
            return -1, {}
        actions = pa.table(table.get_add_actions(flatten=True))
        files: dict[date, list[str]] = {}
        if actions.num_rows:
            days, paths = (actions.column(each).to_pylist() for each in ("partition.day", "path"))
            for day, path in zip(days, paths, strict=True):
                files.setdefault(day, []).append(path)
        return int(table.version()), files

    def count(self, name: str) -> int | None:
        """How many rows the table has, from its log."""
        table = self.open(name)
        return None if table is None else int(table.count())

    def read(self, name: str, columns: Sequence[str]) -> Any:
        """Columns of a table, as an Arrow table. None: there is no such table."""
        table = self.open(name)
        return None if table is None else table.to_pyarrow_table(columns=list(columns))

    def delete_before(self, name: str, first: date) -> None:
        """Delete the days before this one."""
        table = self.open(name)
        if table is not None:
            table.delete(f"day < '{first}'", post_commithook_properties=_NO_HOOKS)

    def vacuum(self, name: str, hours: int) -> None:
        """Remove all files that the table has not named for so long, and files that it never named."""
        table = self.open(name)
        if table is None:
            return
        how = {"retention_hours": hours, "enforce_retention_duration": False, "full": True}
        if table.vacuum(**how, dry_run=True):  # each vacuum adds to the log
            table.vacuum(**how, dry_run=False, post_commithook_properties=_NO_HOOKS)

    def overwrite(self, name: str, rows: Mapping[str, Sequence[Any]]) -> None:
        """Replace a small table that is no part of the declaration."""
        write_deltalake(self._uri(name), pa.table(dict(rows)), mode="overwrite", configuration=PROPERTIES)


def _field(name: str, kind: str, text: str = "") -> Any:
    return Field(name, _type(kind), nullable=True, metadata={"comment": text} if text else None)


_PRIMITIVES: Final = {"bigint": "long", "int": "integer"}


def _type(kind: str) -> Any:
    """Delta's type for one in SQL's spelling, e.g. map<int,bigint>."""
    outer, _, inner = kind.partition("<")
    parts = _parts(inner.removesuffix(">"))
    if outer == "map":
        return MapType(_type(parts[0]), _type(parts[1]), value_contains_null=True)
    if outer == "array":
        return ArrayType(_type(parts[0]), contains_null=True)
    if outer == "struct":
        return StructType([_field(name, of) for name, _, of in (part.partition(":") for part in parts)])
    return PrimitiveType(_PRIMITIVES.get(outer, outer))


def _parts(inner: str) -> list[str]:
    """The types between brackets: split at commas that are in no further brackets."""
    parts, depth = [""], 0
    for character in inner:
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts
