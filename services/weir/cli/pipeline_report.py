"""`weir pipeline report`: one web page from the gold tables."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from weir import __version__
from weir.cli.arguments import parser
from weir.cli.errors import Fail, os_error
from weir.config.options import whole
from weir.pipeline.report import units
from weir.pipeline.report.build import Nothing, report
from weir.pipeline.report.figure import Report
from weir.pipeline.report.page import render
from weir.pipeline.report.public import SECRET_BYTES, Noise

SECRET = "public.secret"

DESCRIPTION = """\
Write one web page about the routers whose history is in the gold tables: traffic, errors, latency, queues in use,
services, notifications, growth with a forecast, what the next 30 and 90 days need, and what is unusual this week.
The page needs nothing else, neither files nor the network: send it, keep it, open it anywhere.

With --public the page may be shown to everybody: whole days only, counts in bins of 8 with noise, nothing below 16, and
nothing about services, edges or machines. The noise comes from a secret file, so that the noise of a day stays the same
in all reports; keep the file. docs/pipeline.md says what this protects.

The tables can be in S3: --tables s3a://BUCKET/PREFIX, with AWS_ACCESS_KEY_ID and the other variables of AWS."""

EXAMPLES = """\
weir pipeline report                                   # report.html, the newest 14 days
weir pipeline report --days 365 --out year.html
weir pipeline report --router smp1.example.org --out smp1.html
weir pipeline report --public --out public.html"""


def main(argv: Sequence[str]) -> int:
    p = parser("weir pipeline report", DESCRIPTION, EXAMPLES)
    p.add_argument("--tables", default="data/pipeline/tables", metavar="DIR", help="the tables (data/pipeline/tables)")
    p.add_argument("--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page (report.html)")
    p.add_argument(
        "--router", action="append", default=[], metavar="NAME", help="only this router; may be repeated (all routers)"
    )
    p.add_argument("--days", type=whole(1, 400), default=14, metavar="N", help="how many days to show, 1 to 400 (14)")
    p.add_argument("--public", action="store_true", help="a page that may be published")
    p.add_argument(
        "--secret",
        type=Path,
        metavar="FILE",
        help=f"where the secret of --public is kept; made when it is not there (DIR/{SECRET})",
    )
    arguments = p.parse_args(argv)
    from weir.pipeline.report import drawing, reading  # these two need packages of the extra

    noise = Noise(secret(arguments.tables, arguments.secret)) if arguments.public else None
    gold = reading.read(arguments.tables, arguments.days, arguments.router, daily=arguments.public)
    try:
        made = report(gold, arguments.days, arguments.router, noise)
    except Nothing as nothing:
        raise Fail(f"{nothing} ({arguments.tables})") from None
    page = render(made, drawing.script(), __version__)
    write(arguments.out, page)
    print(summary(arguments.out, made, len(page.encode())))
    return 0


def secret(tables: str, path: Path | None) -> bytes:
    """Read the secret of the public report's noise. A secret is made the first time, for its owner alone to read."""
    if path is None:
        if "://" in tables:
            raise Fail("--public needs --secret FILE when the tables are not in a directory")
        if not Path(tables).is_dir():
            raise Fail(f"{tables}: no such directory")
        path = Path(tables) / SECRET
    try:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            found = bytes.fromhex(path.read_text("ascii").strip())
        else:
            found = secrets.token_bytes(SECRET_BYTES)
            with os.fdopen(descriptor, "w") as file:
                file.write(found.hex() + "\n")
    except OSError as error:
        raise os_error(path, error) from None
    except ValueError:
        found = b""
    if len(found) < SECRET_BYTES:
        raise Fail(f"{path}: not a secret of {SECRET_BYTES} bytes in hex; delete the file to have another one made")
    return found


def write(path: Path, page: str) -> None:
    """Replace the page at once, so that a web server never shows half of it."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.write_text(page, "utf-8")
        try:
            new.replace(path)
        except OSError:
            new.unlink()
            raise
    except OSError as error:
        raise os_error(path, error) from None


def summary(path: Path, made: Report, size: int) -> str:
    return f"{path}: {made.title}, {made.subtitle}; {units.size(size)}"
