"""The directory of the tables: a local one, or one in a bucket (s3a://bucket/path).

A marker file says that a directory has tables of Weir, so that a mistyped path fails instead of mixing tables with
other files. Small files of state are written whole or not at all.

One command writes at a time: a lock, which ends with the process that holds it. A bucket has no locks: whoever runs the
commands there, such as Kubernetes, must run one at a time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from weir.pipeline.errors import PipelineError

DEFAULT: Final = "data/pipeline/tables"
MARKER: Final = "weir-tables.json"
_VERSION: Final = 1
ORPHAN_ENDS: Final = 20.0
"""Seconds in which the JVM of a run that was killed ends, and gives up the lock."""
_POLL: Final = 0.2


class Directory:
    """`root` is a path or an address, as Spark takes it."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._remote = "://" in root

    @property
    def local(self) -> Path | None:
        return None if self._remote else Path(self.root)

    def location(self, name: str) -> str:
        """Where Spark finds something in the directory. Absolute, because Spark has a working directory of its own."""
        return f"{self.root}/{name}" if self._remote else str(Path(self.root).absolute() / name)

    def claim(self) -> None:
        """Make the directory if it is not there. Raises PipelineError if it belongs to something else."""
        marker = self.read(MARKER)
        if marker is None:
            if self.names(""):
                raise PipelineError(f"{self.root} has other files and no tables of Weir (there is no {MARKER})")
            self.write(MARKER, json.dumps({"version": _VERSION}).encode())
            return
        try:
            version = int(json.loads(marker)["version"])
        except (ValueError, KeyError, TypeError):
            raise PipelineError(f"{self.location(MARKER)} is damaged") from None
        if version > _VERSION:
            raise PipelineError(f"{self.root} has tables of a newer version of Weir")

    @contextlib.contextmanager
    def locked(self, name: str, patience: float = 0.0) -> Iterator[list[int]]:
        """Hold the lock `name` and yield its descriptor, for processes that shall hold it too.

        Wait up to `patience` seconds for another holder. Then raise PipelineError.
        """
        if self.local is None:
            yield []
            return
        path = self.local / f"{name}.lock"
        with _plain_errors():
            self.local.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            _acquire(descriptor, f"another `weir pipeline {name}` writes to {self.root}", patience)
            yield [descriptor]
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes | None:
        """Read a file; None if it is not there."""
        files, path = self._files()
        with _plain_errors():
            try:
                with files.open_input_stream(f"{path}/{name}") as file:
                    content: bytes = file.read()
                    return content
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        files, path = self._files()
        target = f"{path}/{name}"
        with _plain_errors():
            if self._remote:  # an object appears when it is complete
                with files.open_output_stream(target) as file:
                    file.write(content)
                return
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            fresh = f"{target}.new"
            Path(fresh).write_bytes(content)
            os.replace(fresh, target)

    def names(self, name: str) -> list[str]:
        """The names in a directory, sorted; locks and unfinished files are left out."""
        from pyarrow.fs import FileSelector

        files, path = self._files()
        with _plain_errors():
            found = files.get_file_info(FileSelector(f"{path}/{name}".rstrip("/"), allow_not_found=True))
        return sorted(info.base_name for info in found if not info.base_name.endswith((".lock", ".new")))

    def delete(self, name: str) -> None:
        files, path = self._files()
        with _plain_errors(), contextlib.suppress(FileNotFoundError):
            files.delete_file(f"{path}/{name}")

    def _files(self) -> tuple[Any, str]:
        try:
            from pyarrow.fs import FileSystem, LocalFileSystem
        except ImportError:
            raise PipelineError("pyarrow is not installed (pip install 'weir[pipeline]')") from None
        if not self._remote:
            return LocalFileSystem(), str(Path(self.root).absolute())
        with _plain_errors():
            files, path = FileSystem.from_uri(self.root.replace("s3a://", "s3://", 1))
        return files, path


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Raise what the system says as one line."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = error.strerror or str(error).splitlines()[0]
        raise PipelineError(f"{error.filename}: {reason}" if error.filename else reason) from None


def _acquire(descriptor: int, refusal: str, patience: float) -> None:
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= end:
                raise PipelineError(refusal) from None
        time.sleep(_POLL)
