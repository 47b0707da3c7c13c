"""How much memory the bundled server may use.

Without a limit, Redis grows until the kernel kills it. It then loads the same data again, and is killed again. With a
limit, it refuses what needs memory and serves the rest, and the router warns before.
"""

import os
from pathlib import Path

_SHARE = 0.75  # the rest is for the copies that a rewrite of the append-only file makes, and for the edges of `weir up`
_GROUPS = Path("/proc/self/cgroup")
_ROOT = Path("/sys/fs/cgroup")


def default_limit(groups: Path = _GROUPS, root: Path = _ROOT) -> int:
    """Three quarters of the memory of this machine, or of what the container or service may use if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(_SHARE * min([machine, *_group_limits(groups, root)]))


def _group_limits(groups: Path, root: Path) -> list[int]:
    """The limits of the control groups that this process is in."""
    limits = []
    for line in _read(groups).splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        base, file = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        group = base / name.strip("/")
        # In a container, the name may be that of the host, and the container's own group is the root.
        for place in (group, *group.parents):
            if place.is_relative_to(base) and (text := _read(place / file).strip()).isdigit():
                limits.append(int(text))
    return limits


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
