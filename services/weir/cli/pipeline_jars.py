"""`weir pipeline jars`: fetches Delta Lake's Java libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser
from weir.pipeline.jars import DIRECTORY_VARIABLE, default_directory, fetch_jars


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir pipeline jars",
        "Fetches Delta Lake's Java libraries from Maven Central with Maven, and checks that they are the pinned ones.\n"
        f"The other commands look for them in the same directory, or where {DIRECTORY_VARIABLE} says.",
        """
weir pipeline jars
weir pipeline jars --to /opt/weir/jars
""",
    )
    p.add_argument("--to", type=Path, metavar="DIR", help=f"directory for the libraries ({default_directory()})")
    options = p.parse_args(argv)
    directory = options.to or default_directory()
    fetch_jars(directory, lambda text: print(text, flush=True))
    print(f"Delta Lake's libraries are in {directory}")
    return 0
