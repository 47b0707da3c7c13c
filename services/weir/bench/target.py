"""The router to measure: any address, or a local `weir up` with its processes and its Redis."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weir.wire.address import SmpAddress
from weir.wire.versions import SMP_RANGE, VersionRange


class BenchError(Exception):
    """The bench cannot run or has failed. The message is one line for people."""


@dataclass(frozen=True)
class Target:
    """`versions` is the range that the generator offers. `pids` are the local processes of the router, if known.

    `own`: the bench has started this router and removes it with everything that it holds.
    """

    address: SmpAddress
    versions: VersionRange = SMP_RANGE
    pids: tuple[int, ...] = ()
    redis_url: str | None = None
    placement_key: Path | None = None
    own: bool = False
    ntf_address: str | None = None  # of the notification router beside it

    @property
    def basic_auth(self) -> bytes | None:
        return self.address.basic_auth


@dataclass(frozen=True)
class NtfTarget:
    """A notification router that the bench has started, its processes and its Redis."""

    address: SmpAddress
    pids: tuple[int, ...]
    redis_url: str


def read_run_file(home: Path) -> dict[str, Any]:
    """Read run.json, which a running `weir up` keeps in its home."""
    try:
        run: dict[str, Any] = json.loads((home / "run.json").read_text())
    except OSError:
        raise BenchError(f"{home}: no `weir up` runs there") from None
    return run


def find_target(
    address: str | None, home: Path | None, version: int | None = None, pids: tuple[int, ...] = ()
) -> Target:
    versions = SMP_RANGE if version is None else VersionRange(version, version)
    redis_url, placement_key, ntf_address = None, None, None
    if home is not None:
        run = read_run_file(home)
        address = address or run["address"]
        pids = pids or tuple(run["edges"])
        redis_url = run["redis"]["url"]
        placement_key = Path(run["placement_key"])
        ntf_address = run["ntf"]["address"].partition("?")[0] if "ntf" in run else None
    if address is None:
        raise BenchError("which router? give --address smp://…, or --home DIR of a running `weir up`")
    parsed = SmpAddress.parse(address)
    if parsed is None or parsed.scheme != "smp":
        raise BenchError("not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]")
    return Target(parsed, versions, pids, redis_url, placement_key, ntf_address=ntf_address)


def commit() -> str:
    """Return the commit of this code, with a `+` if files have changed since; `unknown` outside a checkout."""
    here = Path(__file__).parent
    try:
        head = subprocess.run(
            ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "-C", str(here), "status", "--porcelain", "--untracked-files=no", "--", str(here.parent)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")
