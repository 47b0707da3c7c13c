"""Which router is measured: any address, or our own `weir up` with its processes."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from weir.wire.address import SmpAddress
from weir.wire.versions import SMP_RANGE, VersionRange


class BenchError(Exception):
    """One line that says what is missing."""


@dataclass(frozen=True)
class Target:
    """`versions` limits what the generator offers; `pids` are the router's processes, when they can be read."""

    address: SmpAddress
    versions: VersionRange = SMP_RANGE
    pids: tuple[int, ...] = ()
    redis_url: str | None = None
    placement_key: Path | None = None

    @property
    def basic_auth(self) -> bytes | None:
        return self.address.basic_auth


def find_target(
    address: str | None, home: Path | None, version: int | None = None, pids: tuple[int, ...] = ()
) -> Target:
    versions = SMP_RANGE if version is None else VersionRange(version, version)
    redis_url, placement_key = None, None
    if home is not None:
        try:
            run = json.loads((home / "run.json").read_text())
        except FileNotFoundError:
            raise BenchError(f"{home}: no `weir up` runs there") from None
        address = address or run["address"]
        pids = pids or tuple(run["edges"])
        redis_url = run["redis"]["url"]
        placement_key = Path(run["placement_key"])
    if address is None:
        raise BenchError("say which router: --address smp://… or --home DIR of a running `weir up`")
    parsed = SmpAddress.parse(address)
    if parsed is None or parsed.scheme != "smp":
        raise BenchError("not an smp:// address: expected smp://FINGERPRINT[:PASSWORD]@host[:port]")
    return Target(parsed, versions, pids, redis_url, placement_key)


def commit() -> str:
    """The commit this code is at, with `+` when it was changed since; `unknown` outside a checkout."""
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
