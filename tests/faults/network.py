"""The network of a run: a namespace for the whole run, and one for each edge, so that no packet leaves this machine.

    edge 0's namespace                    the run's namespace: Redis, Sentinel and all clients
      redis  10.77.0.2 ──── redis line ──── r0  10.77.0.1       10.77.255.1  Redis
      client 10.78.0.2 ──── client line ─── c0  10.78.0.1

Each line can lose everything in one direction or in both, or become slow, without either end hearing of it. A queueing
discipline of the sending end does that: one whose limit no packet fits loses all of them. Losing what the receiving end
gets takes the other end's discipline. Neighbours are entered by hand, because ARP needs both directions.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

from tests.chaos.processes import die_with_parent

REDIS_HOST = "10.77.255.1"
NO_NAMESPACES = "fault runs need network namespaces (Debian: apt install iproute2 util-linux; in a container: root)"
_NEEDED = ("unshare", "nsenter", "ip", "tc")
_LOSE = ("bfifo", "limit", "1")
_SLOW = ("tbf", "rate", "300kbit", "burst", "4kb", "latency", "1s")


@cache
def enter() -> tuple[str, ...]:
    """The words before a command that start it in a namespace of its own; empty if that is not possible here."""
    if any(shutil.which(word) is None for word in _NEEDED):
        return ()
    for words in (("unshare", "--net"), ("unshare", "--user", "--map-root-user", "--net")):
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    return ()


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.decode().strip()}")


def open_run() -> None:
    """Prepare the run's own namespace, which `enter` has made."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "addr", "add", f"{REDIS_HOST}/32", "dev", "lo")


class Line:
    """A line between the run's namespace and an edge's. Directions are the edge's: in and out."""

    def __init__(self, edge: int, name: str, net: int, inside: tuple[str, ...], pid: int) -> None:
        self._inside = inside
        near, far = f"{name[0]}{edge}", name
        self._ends = {"in": ((), near), "out": (inside, far)}
        self.address = f"10.{net}.{edge}.2"
        hub = f"10.{net}.{edge}.1"
        macs = (f"02:00:00:{net:02x}:{edge:02x}:01", f"02:00:00:{net:02x}:{edge:02x}:02")
        peer = ("peer", "name", far, "address", macs[1], "netns", str(pid))
        _run("ip", "link", "add", near, "address", macs[0], "type", "veth", *peer)
        ends = ((), near, hub, self.address, macs[1]), (inside, far, self.address, hub, macs[0])
        for prefix, device, own, other, mac in ends:
            _run(*prefix, "ip", "addr", "add", f"{own}/30", "dev", device)
            _run(*prefix, "ip", "link", "set", device, "up")
            _run(*prefix, "ip", "neigh", "replace", other, "lladdr", mac, "dev", device, "nud", "permanent")

    def lose(self, *directions: str) -> None:
        """Lose all packets in these directions."""
        self._shape(_LOSE, directions)

    def slow(self) -> None:
        self._shape(_SLOW, ("in", "out"))

    def mend(self) -> None:
        for prefix, device in self._ends.values():
            subprocess.run([*prefix, "tc", "qdisc", "del", "dev", device, "root"], capture_output=True, check=False)

    def _shape(self, discipline: tuple[str, ...], directions: tuple[str, ...]) -> None:
        for direction in directions:
            prefix, device = self._ends[direction]
            _run(*prefix, "tc", "qdisc", "replace", "dev", device, "root", *discipline)


class EdgeNetwork:
    """An edge's namespace and its two lines. `inside` are the words that start a command there."""

    def __init__(self, edge: int) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()  # the namespace is there
        self.inside = ("nsenter", "--net", "--target", str(self._holder.pid))
        _run(*self.inside, "ip", "link", "set", "lo", "up")
        pid = self._holder.pid
        self.redis = Line(edge, "redis", 77, self.inside, pid)
        self.client = Line(edge, "client", 78, self.inside, pid)
        _run(*self.inside, "ip", "route", "add", REDIS_HOST, "via", f"10.77.{edge}.1")
        self.address = self.client.address

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
