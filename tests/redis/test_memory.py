"""The memory limit of the bundled server."""

import os
from pathlib import Path

import pytest

from weir.redis.memory import default_limit

MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
MIB = 1 << 20


@pytest.mark.parametrize(
    ("group", "files", "limit"),
    [
        ("0::/", {"memory.max": f"{128 * MIB}"}, 96 * MIB),  # a container
        ("0::/a/b.service", {"a/memory.max": f"{64 * MIB}", "a/b.service/memory.max": "max"}, 48 * MIB),
        ("0::/the/name/on/the/host", {"memory.max": f"{128 * MIB}"}, 96 * MIB),
        ("4:memory:/c", {"memory/c/memory.limit_in_bytes": f"{128 * MIB}"}, 96 * MIB),
        ("4:memory:/c", {"memory/c/memory.limit_in_bytes": "9223372036854771712"}, MACHINE * 3 // 4),
        ("0::/", {"memory.max": "max"}, MACHINE * 3 // 4),
        ("3:cpu:/", {}, MACHINE * 3 // 4),
    ],
)
def test_the_least_of_all_limits(tmp_path: Path, group: str, files: dict[str, str], limit: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "groups").write_text(f"{group}\n")
    assert default_limit(tmp_path / "groups", tmp_path) == limit


def test_a_system_without_groups(tmp_path: Path) -> None:
    assert default_limit(tmp_path / "none", tmp_path) == MACHINE * 3 // 4
