"""Spark sessions: found Java, local jars of Delta Lake, and silence.

Everything that Spark and its JVM write goes to a log in the session's own temporary directory, or to `log`. The
program's own lines are all that a terminal shows. The temporary directory is removed at the end, or by the next session
if this one is killed.

The JVM inherits the locks that the session is given, and ends when its Python process ends. A process that is killed
therefore keeps its locks until its JVM has stopped writing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from weir.pipeline import s3
from weir.pipeline.errors import PipelineError
from weir.pipeline.jars import JARS, find_jars
from weir.pipeline.java import find_java_home
from weir.pipeline.scratch import scratch

OUT_OF_MEMORY: Final = 3
"""Exit code of the JVM when its memory is full (ExitOnOutOfMemoryError)."""
_STOP_LIMIT: Final = 20.0
_ADDED: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
_LOG_SETTINGS: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{yyyy-MM-dd HH:mm:ss} %p %c{1}: %m%n%ex{5}
"""


@dataclass(frozen=True)
class SparkOptions:
    tables: str = ""
    """Where the session's tables are. One in a bucket needs more of Spark."""
    master: str = "local[*]"
    memory: str = "1g"
    """Memory of the driver's JVM. In local mode the driver does all the work."""
    temporary: Path | None = None
    log: Path | None = None
    ui: bool = False
    java_options: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of Spark that override those here. Java's options are added."""


@contextlib.contextmanager
def spark_session(options: SparkOptions, locks: Sequence[int] = ()) -> Iterator[Any]:
    """A SparkSession with Delta Lake. Raises PipelineError if Spark cannot start here."""
    try:
        import pyspark
    except ImportError:
        raise PipelineError("Spark is not installed (pip install 'weir[pipeline]')") from None
    root = logging.getLogger()
    if not root.handlers:  # py4j logs the end of the JVM to the root logger, which prints it unless it has a handler
        root.addHandler(logging.NullHandler())
    bucket = s3.is_bucket(options.tables)
    java, jars = find_java_home(), find_jars(jars=(*JARS, *s3.JARS) if bucket else JARS)
    with scratch(options.temporary) as place:
        environment = _environment(options, place.path, java, Path(pyspark.__file__).parent)
        settings = {**(s3.settings(os.environ) if bucket else {}), **_settings(options, place.path, jars)}
        with _log(options, place.path) as log:
            session, gateway = _start(environment, settings, log, [place.descriptor, *locks])
            try:
                yield session
            finally:
                _stop(session, gateway)


def _settings(options: SparkOptions, place: Path, jars: Sequence[Path]) -> dict[str, str]:
    settings = {
        "spark.app.name": "weir-pipeline",
        "spark.master": options.master,
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.memory": options.memory,
        "spark.driver.extraJavaOptions": "-XX:+ExitOnOutOfMemoryError -Duser.timezone=UTC "
        f"-Dderby.system.home={place} -Djava.io.tmpdir={place} {options.java_options}".rstrip(),
        "spark.executor.extraJavaOptions": f"-Duser.timezone=UTC {options.java_options}".rstrip(),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.ui.enabled": str(options.ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.debug.maxToStringFields": "5",
        # The tables have one file for a batch of minutes: more parallel steps cost more than they bring.
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    }
    if options.master.startswith("local"):
        settings |= {
            "spark.local.dir": str(place),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    added = {name: f"{settings[name]} {value}" for name, value in options.settings.items() if name in _ADDED}
    return {**settings, **options.settings, **added}


def _environment(options: SparkOptions, place: Path, java: Path, home: Path) -> dict[str, str]:
    configuration = place / "conf"
    configuration.mkdir()
    (configuration / "log4j2.properties").write_text(_LOG_SETTINGS)
    if options.master.startswith("local-cluster"):
        home = _linked_home(place, home)  # workers write below it
    environment = {
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        "SPARK_CONF_DIR": str(configuration),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    if options.master.startswith("local"):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return environment


def _linked_home(place: Path, home: Path) -> Path:
    linked = place / "home"
    linked.mkdir()
    for entry in home.iterdir():
        (linked / entry.name).symlink_to(entry)
    return linked


@contextlib.contextmanager
def _log(options: SparkOptions, place: Path) -> Iterator[Any]:
    path = options.log or place / "spark.log"
    try:
        with path.open("ab") as log:
            yield log
    except OSError as error:
        if error.filename != str(path):
            raise
        raise PipelineError(f"{path}: {error.strerror}") from None


def _start(
    environment: Mapping[str, str], settings: Mapping[str, str], log: Any, inherited: list[int]
) -> tuple[Any, Any]:
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    # pyspark reads these while it starts the JVM and the context.
    try:
        with _changed_environment(environment):
            gateway = launch_gateway(conf, {"stdout": log, "stderr": subprocess.STDOUT, "pass_fds": inherited})
            try:
                return SparkSession(SparkContext(conf=conf, gateway=gateway)), gateway
            except BaseException:
                _end(gateway)
                raise
    except (PySparkRuntimeError, _java_error()) as error:
        raise PipelineError(f"Spark does not start: {_reason(error, log)}") from None


@contextlib.contextmanager
def _changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _java_error() -> type[Exception]:
    from py4j.protocol import Py4JError

    error: type[Exception] = Py4JError
    return error


def _reason(error: Exception, log: Any) -> str:
    """The last line of Spark's log that says something, else the error's first line."""
    lines = Path(log.name).read_text("utf-8", "replace").splitlines()
    telling = [line for line in lines if "rror" in line or "Exception" in line]
    return (telling or str(error).splitlines() or ["it gives no reason"])[-1].strip()[:300]


def _stop(session: Any, gateway: Any) -> None:
    with contextlib.suppress(Exception):  # The JVM may be dead: then there is nothing to stop.
        session.stop()
    _end(gateway)


def _end(gateway: Any) -> None:
    from pyspark import SparkContext

    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    if process is not None:
        process.stdin.close()
        try:
            process.wait(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    # The next session of this process starts a JVM of its own.
    SparkContext._gateway = None
    SparkContext._jvm = None
