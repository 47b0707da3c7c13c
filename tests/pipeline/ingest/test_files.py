"""Files that grow and are rotated: each line is read once."""

from pathlib import Path

import pytest

from weir.pipeline.ingest.files import File, cut, find, lines


def only(pattern: Path | str) -> File:
    (file,) = find([str(pattern)])
    return file


def text(file: File, start: int = 0, pattern: str = "") -> bytes:
    return b"".join(line for _, line in lines(file, start, [pattern] if pattern else []))


def test_only_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"unfinished")
    assert find([str(path)]) == []
    path.write_bytes(b"one\ntwo\nthr")
    assert text(only(path)) == b"one\ntwo\n"
    first = only(path)
    path.write_bytes(b"one\ntwo\nthree\n")
    assert text(only(path), first.end) == b"three\n"
    assert only(path).identity == first.identity


def test_long_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"x" * 200_000 + b"\n" + b"y" * 200_000)
    assert only(path).end == 200_001


def test_a_rotated_file_is_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"one\n")
    before = only(path)
    path.rename(tmp_path / "t-2026-11-19T10-00-00.000.json")
    path.write_bytes(b"two\n")
    now = {file.identity: file for file in find([str(path)])}
    assert len(now) == 2
    assert now[before.identity].path.name == "t-2026-11-19T10-00-00.000.json"
    # The file was rotated between being found and being read.
    assert text(before, 0, str(path)) == b"one\n"


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"one\n")
    file = only(path)
    path.write_bytes(b"begun again\n")
    with pytest.raises(FileNotFoundError):
        text(file, 0, str(path))


def test_a_copy_is_not_read_twice(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"one\n")
    (tmp_path / "b.json").write_bytes(b"one\ntwo\n")
    assert only(tmp_path).end == 8


def test_directories_patterns_and_packed_files(tmp_path: Path) -> None:
    for name in ("a.json", "b.json", "c.json.gz"):
        (tmp_path / name).write_bytes(f"{name}\n".encode())
    assert len(find([str(tmp_path)])) == 2
    assert len(find([str(tmp_path / "a*")])) == 1
    assert len(find([str(tmp_path / "a*"), str(tmp_path)])) == 2


@pytest.mark.parametrize("most", [1, 3, 4, 5, 100])
def test_parts_end_behind_lines_and_make_the_whole(tmp_path: Path, most: int) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(b"one\ntwo\nthree\nfour\nunfin")
    file, start, parts = only(path), 0, []
    while start < file.end:
        end = cut(file, start, most)
        parts.append(text(file._replace(end=end), start))
        start = end
    assert b"".join(parts) == b"one\ntwo\nthree\nfour\n"
    assert all(part.endswith(b"\n") for part in parts)
