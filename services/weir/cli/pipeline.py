"""`weir pipeline`: what the edges publish becomes tables and a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from weir.cli.main import Command, dispatch
from weir.pipeline.errors import PipelineError

COMMANDS: dict[str, Command] = {
    "ingest": Command("weir.cli.pipeline_ingest", "read rollups and spans into the bronze tables"),
    "tables": Command("weir.cli.pipeline_tables", "make silver and gold tables, describe them, delete what is old"),
    "report": Command("weir.cli.pipeline_report", "write a web page about traffic, latency, services and growth"),
    "demo": Command("weir.cli.pipeline_demo", "simulate two weeks of two routers and write the report about them"),
    "jars": Command("weir.cli.pipeline_jars", "fetch Java libraries for Spark; once, before all other commands"),
}
USAGE = f"""\
usage: weir pipeline COMMAND …

The history of routers: every minute, each edge publishes numbers about what it did. These commands make tables of them,
with Spark and Delta Lake, and a report. They need Java 17 or 21 and the extra: pip install 'weir[pipeline]'

commands:
{chr(10).join(f"  {name:8} {command.text}" for name, command in COMMANDS.items())}

`weir pipeline COMMAND --help` explains a command with examples. To begin:
  weir pipeline ingest --home data --once
  weir pipeline tables
  weir pipeline report
"""


def main(argv: Sequence[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    try:
        return dispatch("weir pipeline", COMMANDS, list(argv))
    except PipelineError as error:
        reason = str(error)
    except ModuleNotFoundError as error:
        if not error.name or error.name.split(".")[0] == "weir":
            raise
        reason = f"needs the Python package {error.name} (pip install 'weir[pipeline]')"
    print(f"weir pipeline {argv[0]}: {reason}", file=sys.stderr)
    return 1
