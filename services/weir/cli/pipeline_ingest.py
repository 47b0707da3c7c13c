"""`weir pipeline ingest`: reads rollups and spans into the bronze tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from weir.cli.arguments import load_config, parser
from weir.cli.errors import Fail, os_error
from weir.cli.pipeline_options import add_spark_options, add_tables_option, spark_options
from weir.cli.programs import NTF, SMP, Program
from weir.config import kinds
from weir.config.options import of_kind, whole
from weir.pipeline.directory import Directory
from weir.pipeline.ingest.progress import Progress
from weir.pipeline.ingest.registry import Registry
from weir.pipeline.ingest.run import IngestOptions, ingest
from weir.redis.partitions import is_prefix


def main(argv: Sequence[str]) -> int:
    p = parser(
        "weir pipeline ingest",
        "Reads what the edges publish about themselves, and writes it to the bronze tables, each record exactly\n"
        "once: it may be killed at any time and started again. Missing records are noted in bronze/gaps. Runs until\n"
        "SIGTERM or Ctrl-C, and then ends after the batch at hand; with --once, until all is read.\n\n"
        "One run reads all routers whose tables are together. Redis is only read, with XLEN, XRANGE and XREVRANGE.\n"
        "Afterwards `weir pipeline tables` makes the other tables.",
        """
weir pipeline ingest --home data                               of a running `weir up`
weir pipeline ingest --once --redis redis://10.0.0.5/0 --password-file /run/secrets/redis
weir pipeline ingest --config smp.toml --ntf-config ntf.toml --tables /srv/weir/tables --every 5m
weir pipeline ingest --once --redis redis://redis/0#eu --spans /var/log/otel/traces.json
""",
    )
    source = p.add_argument_group("routers (each option may be repeated)")
    source.add_argument(
        "--home", type=Path, action="append", default=[], metavar="DIR", help="home of a running `weir up`"
    )
    source.add_argument(
        "--config", type=Path, action="append", default=[], metavar="FILE", help="configuration file of an SMP router"
    )
    source.add_argument(
        "--ntf-config", type=Path, action="append", default=[], metavar="FILE", help="of a notification router"
    )
    source.add_argument(
        "--redis",
        action="append",
        default=[],
        metavar="URL[#PREFIX]",
        help="Redis, and the prefix of a router's keys. Without a prefix: of an SMP and of a notification router there",
    )
    source.add_argument(
        "--redis-dir",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="directory with the files url, and password and prefix where needed, as Kubernetes mounts them",
    )
    source.add_argument("--password-file", type=Path, metavar="FILE", help="password for --redis")
    p.add_argument(
        "--spans",
        action="append",
        default=[],
        metavar="PATH",
        help="spans that the OpenTelemetry collector's file exporter has written: a file with its rotated files, a\n"
        "directory or a pattern; repeatable",
    )
    add_tables_option(p)
    when = p.add_mutually_exclusive_group()
    when.add_argument("--once", action="store_true", help="read what there is, and end")
    when.add_argument(
        "--every", type=of_kind(kinds.DURATION), default=60.0, metavar="TIME", help="time between batches (60s)"
    )
    p.add_argument(
        "--batch",
        type=whole(100, 1_000_000),
        default=50_000,
        metavar="N",
        help="records of a batch, about (%(default)s)",
    )
    add_spark_options(p)
    options = p.parse_args(argv)
    registries = tuple(dict.fromkeys(_registries(options)))
    if not registries and not options.spans:
        p.error("nothing to read: give --home, --config, --ntf-config, --redis, --redis-dir or --spans")
    if not options.once and options.every < 1:
        p.error("--every: at least 1s")
    done = ingest(
        IngestOptions(
            Directory(options.tables),
            registries,
            tuple(options.spans),
            None if options.once else options.every,
            options.batch,
            spark_options(options),
        ),
        Progress(),
    )
    return 0 if done or not options.once else 130


def _registries(options: argparse.Namespace) -> list[Registry]:
    password_file = str(options.password_file) if options.password_file else None
    found = []
    for home in options.home:
        found += _both(_url_of(home), None)
    for program, paths in ((SMP, options.config), (NTF, options.ntf_config)):
        found += [_configured(program, path) for path in paths]
    for url in options.redis:
        plain, sharp, prefix = url.partition("#")
        if not is_prefix(prefix):
            raise Fail(f"--redis: {prefix!r} is not a prefix")
        found += [Registry(plain, prefix, password_file=password_file)] if sharp else _both(plain, password_file)
    found += [_mounted(directory) for directory in options.redis_dir]
    return found


def _both(url: str, password_file: str | None) -> list[Registry]:
    """A Redis may be shared by an SMP router and a notification router, under their usual prefixes."""
    from weir.notifier.config import Redis as NotifierRedis
    from weir.redis.settings import Redis

    return [Registry(url, prefix, password_file=password_file) for prefix in (Redis.prefix, NotifierRedis.prefix)]


def _url_of(home: Path) -> str:
    from weir.bench.target import BenchError, read_run_file

    try:
        url: str = read_run_file(home)["redis"]["url"]
    except BenchError as error:
        raise Fail(str(error)) from None
    return url


def _configured(program: Program, path: Path) -> Registry:
    redis = load_config(program, path).redis
    file = None if redis.password_file is None else str(redis.password_file.absolute())
    return Registry(redis.url, redis.prefix, redis.password, file)


def _mounted(directory: Path) -> Registry:
    def read(name: str) -> str:
        return (directory / name).read_text("utf-8").strip()

    try:
        password = directory / "password"
        prefix = read("prefix") if (directory / "prefix").exists() else ""
        return Registry(read("url"), prefix, password_file=str(password.absolute()) if password.exists() else None)
    except OSError as error:
        raise os_error(error.filename, error) from None
