"""Options that several commands of `weir pipeline` share."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from weir.pipeline.directory import DEFAULT
from weir.pipeline.spark import SparkOptions

_LEAST_MEMORY = 512  # MiB; Spark refuses less
_UNITS = {"m": 1, "g": 1024}


def add_tables_option(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "--tables",
        default=DEFAULT,
        metavar="DIR",
        help=f"directory of the tables ({DEFAULT}), or s3a://BUCKET/PATH, where you let only one such command run",
    )


def add_spark_options(p: argparse.ArgumentParser) -> None:
    defaults = SparkOptions()
    group = p.add_argument_group("Spark")
    group.add_argument(
        "--master",
        default=defaults.master,
        metavar="URL",
        help="where Spark works: local[N] with N threads, k8s://… (%(default)s: all of this machine's cores)",
    )
    group.add_argument(
        "--memory", type=_memory, default=defaults.memory, metavar="SIZE", help="of the JVM, e.g. 2g (%(default)s)"
    )
    group.add_argument(
        "--conf", type=_setting, action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; repeatable"
    )
    group.add_argument("--spark-ui", action="store_true", help="serve Spark's own pages, on port 4040")
    group.add_argument("--spark-log", type=Path, metavar="FILE", help="append what Spark says to a file")


def spark_options(options: argparse.Namespace) -> SparkOptions:
    return SparkOptions(
        tables=options.tables,
        master=options.master,
        memory=options.memory,
        log=options.spark_log,
        ui=options.spark_ui,
        settings=dict(options.conf),
    )


def _memory(text: str) -> str:
    found = re.fullmatch(r"(\d+)([mg])b?", text.lower())
    if found is None or int(found[1]) * _UNITS[found[2]] < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size such as 2g, at least {_LEAST_MEMORY}m")
    return found[1] + found[2]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r}: expected spark.NAME=VALUE")
    return name, value
