"""`weir pipeline tables`: brings silver and gold up to date, describes them, and writes the reference's daily file."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from weir.cli.arguments import parser
from weir.cli.errors import os_error
from weir.cli.pipeline_options import add_spark_options, add_tables_option, spark_options
from weir.config.options import whole
from weir.pipeline.directory import ORPHAN_ENDS, Directory

if TYPE_CHECKING:
    from weir.pipeline.tables.store import Store

_LONGEST_KEPT = 36_500


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir pipeline tables",
        "Brings the silver and gold tables up to date with what `weir pipeline ingest` has read: computes the days\n"
        "that have new records, and deletes the days that are kept no longer. It may be killed at any time and\n"
        "started again.\n"
        "Without new records it ends within seconds and starts no Spark.\n\n"
        "Any tool that reads Delta tables can read them; docs/pipeline.md has queries to begin with.",
        """
weir pipeline tables
weir pipeline tables --tables /srv/weir/tables --keep-silver 14 --keep-gold 800
weir pipeline tables --describe
weir pipeline tables --csv smp --router smp1.example.org --output smp-server-stats.daily.log
""",
    )
    add_tables_option(p)
    instead = p.add_mutually_exclusive_group()
    instead.add_argument("--describe", action="store_true", help="only print all tables, columns and numbers of rows")
    instead.add_argument(
        "--csv",
        choices=("smp", "ntf"),
        help="only print the reference server's daily statistics: a line for each day that has ended",
    )
    p.add_argument("--router", metavar="NAME", help="--csv: of this router (the only one)")
    p.add_argument("--output", type=Path, metavar="FILE", help="--csv: write FILE instead of printing")
    kept = p.add_argument_group("how many days are kept before the present one")
    for layer, days, what in (
        ("bronze", 7, "records as they came; `weir pipeline ingest` then deletes them"),
        ("silver", 35, "one row for each edge and minute"),
        ("gold", 400, "one row for each router and minute, hour or day"),
    ):
        kept.add_argument(
            f"--keep-{layer}",
            type=whole(0, _LONGEST_KEPT),
            default=days,
            metavar="DAYS",
            help=f"{what} (%(default)s)",
        )
    p.add_argument(
        "--grace",
        type=whole(0, 1000),
        default=1,
        metavar="HOURS",
        help="hours for which deleted files stay, for queries that still read them (%(default)s)",
    )
    add_spark_options(p)
    options = p.parse_args(argv)
    from weir.pipeline.tables.store import Store  # needs packages of the extra

    directory = Directory(options.tables)
    store = Store(options.tables)
    today = datetime.now(UTC).date()
    if options.describe:
        _describe(store)
    elif options.csv:
        _write_csv(store, options, today)
    else:
        _update(store, directory, options, today)
    return 0


def _describe(store: Store) -> None:
    from weir.pipeline.bronze import TABLES as BRONZE
    from weir.pipeline.tables.columns import TABLES
    from weir.pipeline.tables.describe import text

    for line in text((*BRONZE.values(), *TABLES.values()), store.count):
        print(line)


def _write_csv(store: Store, options: argparse.Namespace, today: date) -> None:
    from weir.pipeline.tables.statistics import read

    lines = "".join(f"{line}\n" for line in read(store, options.csv, options.router, today))
    if options.output is None:
        sys.stdout.write(lines)
        return
    try:
        options.output.write_text(lines)
    except OSError as error:
        raise os_error(options.output, error) from None
    print(f"{options.output}: {lines.count(chr(10))} days")


def _update(store: Store, directory: Directory, options: argparse.Namespace, today: date) -> None:
    from weir.pipeline.tables import retention
    from weir.pipeline.tables.build import update

    began = monotonic()
    with directory.locked("tables", ORPHAN_ENDS) as locks, contextlib.ExitStack() as stack:
        updated = update(store, lambda: stack.enter_context(_spark(options, locks)), _say)
        keep = retention.Keep(options.keep_bronze, options.keep_silver, options.keep_gold)
        closed = retention.apply(store, keep, today, options.grace)
    done = f"{len(updated.gold)} days computed" if updated else "no new records"
    lost = [f"{days} days of {layer}" for layer, days in closed.items() if days]
    expired = f", expired: {', '.join(lost)}" if lost else ""
    _say(f"{done}{expired} ({monotonic() - began:.0f} s)")


@contextlib.contextmanager
def _spark(options: argparse.Namespace, locks: list[int]) -> Iterator[Any]:
    from weir.pipeline.failures import spark_failures
    from weir.pipeline.spark import spark_session

    _say("starting Spark")
    with spark_session(spark_options(options), locks) as session, spark_failures(session, options.tables):
        yield session


def _say(line: str) -> None:
    print(line, flush=True)
