"""`weir pipeline jars`: fetches the Java libraries that Spark needs besides its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import parser
from weir.pipeline import s3
from weir.pipeline.jars import DIRECTORY_VARIABLE, JARS, default_directory, fetch_jars


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir pipeline jars",
        "Fetches the Java libraries of Delta Lake and for S3 from Maven Central with Maven, and checks that they are\n"
        "the pinned ones: 13 MB each.\n"
        f"The other commands look for them in the same directory, or where {DIRECTORY_VARIABLE} says.",
        """
weir pipeline jars
weir pipeline jars --to /opt/weir/jars
""",
    )
    p.add_argument("--to", type=Path, metavar="DIR", help=f"directory for the libraries ({default_directory()})")
    options = p.parse_args(argv)
    directory = options.to or default_directory()
    fetch_jars(directory, lambda text: print(text, flush=True), (*JARS, *s3.JARS))
    print(f"Spark's further Java libraries are in {directory}")
    return 0
