#!/usr/bin/env python3
"""The files that the pipeline's image has besides the first image's: Java, Spark, Delta Lake, the report's libraries.

    rootfs_pipeline.py BASE DEST   to be laid over BASE, which `rootfs.py base` has made

Java is linked by jlink of Debian's JDK, from the modules that Spark uses. The wheels are those of
requirements/pipeline.txt that requirements/run.txt does not have; pyspark is published as a source archive, of which
pip makes a wheel first. The jars are the pinned ones of weir.pipeline. The image fetches nothing when it runs.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import rootfs

JDK = ("openjdk-17-jdk-headless", "openjdk-17-jre-headless")
# Spark's own start scripts are written for bash.
PACKAGES = ("bash", "libtinfo6")
JAVA = "usr/lib/jvm/java-17"
JARS = "usr/local/share/weir/jars"
MODULES = (
    "java.se",
    "jdk.crypto.ec",  # TLS
    "jdk.incubator.vector",  # Spark 4.2 does not start without it
    "jdk.management",
    "jdk.naming.dns",
    "jdk.net",
    "jdk.security.auth",  # Hadoop asks it for the name of the user
    "jdk.unsupported",
    "jdk.zipfs",
)

# Left out of the wheels, besides what the first image leaves out: parts of Spark that the pipeline has no use for
# (machine learning, RocksDB, Connect), libraries of other systems, Arrow's RPC, examples, sources.
LEFT_OUT = re.compile(
    rf"""(?!pyspark/testing/)(?:{rootfs.WHEEL_LEFT_OUT.pattern})  # pyspark imports its own test helpers
    | pyspark/(examples|sbin|data|ml|mllib)/.*
    | pyspark/bin/.*\.cmd
    | pyspark/jars/(rocksdbjni|spark-connect|spark-mllib|spark-graphx|breeze|spire|cats-kernel|algebra|arpack)[-_].*
    | pyspark/jars/connect-repl/.*
    | pyspark/jars/netty-.*-(osx|windows|linux-riscv64).*
    | pyarrow/(_flight|libarrow_flight|libarrow_python_flight|flight).*
    | pyarrow/(include|src)/.*  | .*\.cc
    """,
    re.VERBOSE,
)


def jre(root: Path) -> None:
    """Link a Java runtime of Debian's modules."""
    with tempfile.TemporaryDirectory(dir=rootfs.CACHE) as scratch:
        for deb in rootfs.download_debs(rootfs.debs(JDK), rootfs.CACHE / "debs"):
            rootfs.run("dpkg-deb", "-x", deb, scratch)
        (home,) = Path(scratch).glob("usr/lib/jvm/java-17-openjdk-*")
        (root / JAVA).parent.mkdir(parents=True)
        rootfs.run(
            *(home / "bin/jlink", "--module-path", home / "jmods", "--add-modules", ",".join(MODULES)),
            *("--strip-debug", "--no-header-files", "--no-man-pages", "--output", root / JAVA),
        )
        # jlink writes the licences without their owner's right to write, and so nobody could delete the directory.
        for path in (root / JAVA / "legal").rglob("*"):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)


def blocks(requirements: Path) -> dict[str, str]:
    """Name → the lines of a lock file that pin it."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(\S*==.*\n(?:[ \t]+.*\n)*)", requirements.read_text(), re.MULTILINE)
    return {name: name + rest for name, rest in found}


def added() -> dict[str, str]:
    """The packages that are in the pipeline's lock file and not in that of the first image."""
    run = blocks(rootfs.REPO / "requirements/run.txt")
    return {name: text for name, text in blocks(rootfs.REPO / "requirements/pipeline.txt").items() if name not in run}


def install_wheels(base: Path, root: Path) -> None:
    wanted = added()
    pyspark = wanted.pop("pyspark")
    with tempfile.TemporaryDirectory() as scratch:
        lock = Path(scratch) / "lock.txt"
        lock.write_text("".join(wanted.values()))
        rootfs.install_wheels(base, root, lock, LEFT_OUT)
    with zipfile.ZipFile(pyspark_wheel(pyspark)) as archive:
        for entry in archive.infolist():
            # A wheel keeps the scripts for PATH elsewhere; nobody calls those in the image.
            if entry.is_dir() or ".data/" in entry.filename or LEFT_OUT.fullmatch(entry.filename):
                continue
            target = Path(archive.extract(entry, root / rootfs.SITE))
            target.chmod(0o755 if re.match(r"pyspark/bin/(?!.*\.py$)", entry.filename) else 0o644)


def pyspark_wheel(pinned: str) -> Path:
    """The wheel of pyspark's source archive, kept for the next image."""
    directory = rootfs.CACHE / f"pyspark-{hashlib.sha256(pinned.encode()).hexdigest()[:16]}"
    if found := list(directory.glob("*.whl")):
        return found[0]
    with tempfile.TemporaryDirectory(dir=rootfs.CACHE) as scratch:
        lock = Path(scratch) / "lock.txt"
        lock.write_text(pinned)
        rootfs.run(
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q", "--no-deps"),
            *("--require-hashes", "--no-build-isolation", "--cache-dir", rootfs.CACHE / "pip"),
            *("-w", directory, "-r", lock),
            env={"PIP_ROOT_USER_ACTION": "ignore", **rootfs.build_tools(Path(scratch))},
        )
    return next(directory.glob("*.whl"))


def copy_jars(root: Path) -> None:
    sys.path.insert(0, str(rootfs.REPO / "services"))
    from weir.pipeline.errors import PipelineError
    from weir.pipeline.jars import JARS as DELTA
    from weir.pipeline.jars import default_directory, fetch_jars
    from weir.pipeline.s3 import JARS as S3

    try:
        fetch_jars(default_directory(), print, (*DELTA, *S3))
    except PipelineError as error:
        raise rootfs.ImageError(str(error)) from None
    for jar in (*DELTA, *S3):
        rootfs.place(default_directory() / jar.file, root / JARS / jar.file)


def pipeline(base: Path, root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for deb in rootfs.download_debs(rootfs.debs(PACKAGES), rootfs.CACHE / "debs"):
        rootfs.unpack_deb(deb, root)
    jre(root)
    install_wheels(base, root)
    copy_jars(root)
    rootfs.compile_python(base, root, (rootfs.SITE,), "unchecked-hash")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("dest", type=Path)
    options = parser.parse_args()
    try:
        rootfs.CACHE.mkdir(parents=True, exist_ok=True)
        pipeline(options.base, options.dest)
    except (rootfs.ImageError, OSError, subprocess.CalledProcessError) as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
