"""The second image, that of the data pipeline: what is in it, and that Spark works there with nothing to fetch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import rootfs
import rootfs_pipeline

import image
from tests.image.conftest import Built, read

pytestmark = [pytest.mark.all("it builds the image of the pipeline"), pytest.mark.timeout(900)]

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root for chroot")


@pytest.fixture(scope="module")
def pipeline_image(in_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    archive = tmp_path_factory.mktemp("image") / "weir-pipeline.tar"
    try:
        image.build(["localhost/weir-pipeline:test"], archive, False, sys.stderr, pipeline=True)
    except rootfs.ImageError as error:
        if "use the Dockerfile" in str(error):
            pytest.skip(str(error))
        raise
    return read(archive)


@pytest.fixture(scope="module")
def root(pipeline_image: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("root")
    directory.chmod(0o755)
    pipeline_image.unpack(directory)
    (directory / "dev").mkdir(exist_ok=True)
    os.mknod(directory / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))
    os.mknod(directory / "dev/urandom", 0o666 | 0o020000, os.makedev(1, 9))
    (directory / "dev/fd").symlink_to("/proc/self/fd")  # bash reads from there what a command writes
    (directory / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (directory / "dev/null").chmod(0o666)
    (directory / "dev/urandom").chmod(0o666)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def inside(root: Path, *command: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    env = dict(part.split("=", 1) for part in (*image.CONFIG["Env"], *image.PIPELINE_ENV))
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin")
    assert chroot is not None
    line = [chroot, f"--userspec={rootfs.UID}:{rootfs.UID}", root, *command]
    return subprocess.run(line, env=env, capture_output=True, text=True, check=False, timeout=seconds)


def test_size(pipeline_image: Built) -> None:
    """docs/pipeline.md says: 950 MB. The layers below and above Spark are those of the first image."""
    assert len(pipeline_image.layers) == 3
    assert sum(pipeline_image.layers) < 1_000_000_000


def test_nothing_that_installs_or_compiles(pipeline_image: Built) -> None:
    names = {Path(name).name for name, info in pipeline_image.files.items() if not info.isdir()}
    assert names & {"apt-get", "dpkg", "pip", "gcc", "javac", "jlink", "jmod", "mvn"} == set()
    assert [name for name, info in pipeline_image.files.items() if info.mode & 0o6000] == []


def test_versions_are_those_of_the_lock_file(pipeline_image: Built, in_tree: Path) -> None:
    found = {
        match[1].lower().replace("_", "-")
        for name in pipeline_image.files
        if (match := re.match(rf"{rootfs.SITE}/([A-Za-z0-9_.]+-[^/]+)\.dist-info/METADATA$", name))
    }
    for name, block in rootfs_pipeline.blocks(in_tree / "requirements/pipeline.txt").items():
        pinned = re.match(r"\S+?==([^\s;\\]+)", block)
        assert pinned is not None
        if "; " in block.splitlines()[0]:  # of other systems
            continue
        assert f"{name}-{pinned[1]}".lower().replace("_", "-") in found, name


@needs_root
def test_commands_run_as_the_user(root: Path) -> None:
    for command in ("ingest", "tables", "report"):
        done = inside(root, "weir", "pipeline", command, "--help")
        assert done.returncode == 0 and "--tables" in done.stdout, done.stderr


@needs_root
def test_spark_makes_tables_and_a_report(root: Path) -> None:
    """With a proc of its own Java knows its memory. All files are written below /tmp, as in a pod."""
    program = """
from pathlib import Path
from weir.pipeline.spark import SparkOptions, spark_session
with spark_session(SparkOptions(master="local[1]", log=Path("/tmp/spark.log"))) as spark:
    spark.range(100).write.format("delta").save("/tmp/table")
from deltalake import DeltaTable
print(DeltaTable("/tmp/table").to_pyarrow_table().num_rows)
import vl_convert, pyarrow.fs
print(len(vl_convert.vega_themes() if hasattr(vl_convert, "vega_themes") else vl_convert.get_themes()) > 0)
"""
    proc = root / "proc"
    subprocess.run(["mount", "-t", "proc", "proc", proc], check=True)
    try:
        done = inside(root, "python3", "-c", program, seconds=300)
    finally:
        subprocess.run(["umount", "-l", proc], check=True)
    log = root / "tmp/spark.log"
    assert done.stdout.split() == ["100", "True"], done.stderr + (log.read_text()[-3000:] if log.exists() else "")
