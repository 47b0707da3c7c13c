"""A directory for Spark's temporary files that is always removed, by the next run if not by its own.

Each run has a directory below a common parent, and holds a lock on a file in it. A run removes the directories whose
lock nobody holds: those of runs that were killed. Spark's JVM inherits the lock, so a directory stays for as long as
either of the two lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_LOCK: Final = "lock"


class Scratch(NamedTuple):
    path: Path
    descriptor: int
    """The descriptor of the lock. A process that inherits the descriptor keeps the directory."""


def default_parent() -> Path:
    return Path(tempfile.gettempdir()) / f"weir-pipeline-{os.getuid()}"


@contextlib.contextmanager
def scratch(parent: Path | None = None) -> Iterator[Scratch]:
    parent = parent or default_parent()
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # One run at a time makes and removes directories: none is removed between its making and its lock.
    with _locked(parent / _LOCK):
        for other in parent.iterdir():
            if other.is_dir():
                _remove_abandoned(other)
        path = Path(tempfile.mkdtemp(dir=parent))
        descriptor = _open(path / _LOCK)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield Scratch(path, descriptor)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(directory: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = _open(directory / _LOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            os.close(descriptor)
