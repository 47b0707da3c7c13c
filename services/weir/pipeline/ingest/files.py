"""Files that a program still appends to, and that it rotates: which bytes of them are new.

A file is known by a hash of its first line, so it stays the same file when it is renamed, moved or copied. Only whole
lines are read. A file that is truncated and begun again has another first line, and so it is another file.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

_HEAD: Final = 4096
_CHUNK: Final = 1 << 16
_PACKED: Final = (".gz", ".zst")


class File(NamedTuple):
    path: Path
    identity: str
    end: int
    """Behind the last whole line."""


def find(patterns: Iterable[str]) -> list[File]:
    """The files that there are now, in the order of their names. Of copies of a file, the longest."""
    found: dict[str, File] = {}
    for path in sorted({each for pattern in patterns for each in _expand(pattern)}):
        try:
            file = _look_at(path)
        except FileNotFoundError:
            continue  # rotated away
        if file is not None and (file.identity not in found or found[file.identity].end < file.end):
            found[file.identity] = file
    return list(found.values())


def _expand(pattern: str) -> Iterator[Path]:
    """The files of a directory, of a pattern; or one file, and those it was before it was rotated."""
    path = Path(pattern)
    if path.is_dir():
        candidates = list(path.iterdir())
    elif glob.has_magic(pattern):
        candidates = [Path(each) for each in glob.glob(pattern)]
    else:
        candidates = [path, *path.parent.glob(f"{glob.escape(path.stem)}-*{glob.escape(path.suffix)}")]
    yield from (each for each in candidates if each.is_file() and each.suffix not in _PACKED)


def _look_at(path: Path) -> File | None:
    """None for a file without a whole line."""
    with path.open("rb") as file:
        identity = _identity(file)
        position = file.seek(0, 2)
        while identity and position > 0:
            start = max(0, position - _CHUNK)
            file.seek(start)
            last = file.read(position - start).rfind(b"\n")
            if last >= 0:
                return File(path, identity, start + last + 1)
            position = start
    return None


def _identity(file: BinaryIO) -> str | None:
    """None while the first line is not whole."""
    head = file.read(_HEAD)
    first, newline, _ = head.partition(b"\n")
    return hashlib.sha256(first).hexdigest()[:16] if newline or len(head) == _HEAD else None


def cut(file: File, start: int, most: int) -> int:
    """The end of a part that begins at `start` and has about `most` bytes: behind a line."""
    if file.end - start <= most:
        return file.end
    with file.path.open("rb") as content:
        content.seek(start + most - 1)
        content.readline()
        return min(content.tell(), file.end)


def lines(file: File, start: int, patterns: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """The lines from `start` up to the file's end, with their positions.

    The file may have been rotated since it was found. It is then searched again. Raises FileNotFoundError.
    """
    for path in (file.path, *(each.path for each in find(patterns) if each.identity == file.identity)):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as content:
            if _identity(content) != file.identity:
                continue
            content.seek(start)
            while (position := content.tell()) < file.end and (line := content.readline()):
                yield position, line
            return
    raise FileNotFoundError(file.path)
