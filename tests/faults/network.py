"""The network of a run: a namespace for the whole run, and one for each edge and each Redis node, so that no packet
leaves this machine. The run's namespace forwards packets between the others.

    edge 0's namespace                      the run's namespace: Sentinel, all clients       Redis node 0's namespace
      redis  10.77.0.2 ──── redis line ──── r0  10.77.0.1     n0  10.76.0.1 ── node line ──── node 10.76.0.2
      client 10.78.0.2 ──── client line ─── c0  10.78.0.1         10.76.255.1  Sentinel

Each line can lose everything in one direction or in both, or become slow, without either end hearing of it. A queueing
discipline of the sending end does that: one whose limit no packet fits loses all of them. Losing what the receiving end
gets takes the other end's discipline. Neighbours are entered by hand, because ARP needs both directions.

Redis nodes can also be kept apart from each other, or from Sentinel, while edges reach them: by rules of the run's
namespace, which forwards nothing between these addresses, and neither sends nor takes what is between them and itself.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.chaos.processes import die_with_parent

SENTINEL_HOST = "10.76.255.1"
NO_NAMESPACES = "fault runs need network namespaces (Debian: apt install iproute2 util-linux; in a container: root)"
_NEEDED = ("unshare", "nsenter", "ip", "tc")
_LOSE = ("bfifo", "limit", "1")
_SLOW = ("tbf", "rate", "300kbit", "burst", "4kb", "latency", "1s")
_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
_APART = "5"  # the priority of rules that keep nodes apart; they come before the rule for the namespace's own addresses
_OWN = "9"


@cache
def enter() -> tuple[str, ...]:
    """The words before a command that start it in a namespace of its own; empty if that is not possible here."""
    if any(shutil.which(word) is None for word in _NEEDED):
        return ()
    for words in (("unshare", "--net"), ("unshare", "--user", "--map-root-user", "--net")):
        forwards = [*words, "sh", "-c", f"echo 1 >{_FORWARD}"]
        if subprocess.run(forwards, capture_output=True, check=False).returncode == 0:
            return words
    return ()


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(words)}: {done.stderr.decode().strip()}")


def open_run() -> None:
    """Prepare the run's own namespace, which `enter` has made."""
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "addr", "add", f"{SENTINEL_HOST}/32", "dev", "lo")
    _run("ip", "rule", "add", "priority", _OWN, "lookup", "local")
    _run("ip", "rule", "del", "priority", "0")
    _FORWARD.write_text("1")


class Line:
    """A line between the run's namespace and another one. Directions are those of the other one: in and out."""

    def __init__(self, number: int, name: str, net: int, inside: tuple[str, ...], pid: int) -> None:
        self._inside = inside
        near, far = f"{name[0]}{number}", name
        self._ends = {"in": ((), near), "out": (inside, far)}
        self.address = f"10.{net}.{number}.2"
        self.hub = f"10.{net}.{number}.1"
        macs = (f"02:00:00:{net:02x}:{number:02x}:01", f"02:00:00:{net:02x}:{number:02x}:02")
        peer = ("peer", "name", far, "address", macs[1], "netns", str(pid))
        _run("ip", "link", "add", near, "address", macs[0], "type", "veth", *peer)
        ends = ((), near, self.hub, self.address, macs[1]), (inside, far, self.address, self.hub, macs[0])
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


class _Namespace:
    """A namespace that exists until `close`. `inside` are the words that start a command there."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._holder.stdout is not None
        self._holder.stdout.readline()  # the namespace is there
        self.pid = self._holder.pid
        self.inside = ("nsenter", "--net", "--target", str(self.pid))
        _run(*self.inside, "ip", "link", "set", "lo", "up")

    def route_by(self, line: Line) -> None:
        _run(*self.inside, "ip", "route", "add", "default", "via", line.hub)

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class EdgeNetwork(_Namespace):
    """An edge's namespace and its two lines."""

    def __init__(self, edge: int) -> None:
        super().__init__()
        self.redis = Line(edge, "redis", 77, self.inside, self.pid)
        self.client = Line(edge, "client", 78, self.inside, self.pid)
        self.route_by(self.redis)
        self.address = self.client.address


class NodeNetwork(_Namespace):
    """A Redis node's namespace and its line to edges, other nodes and Sentinel."""

    def __init__(self, node: int) -> None:
        super().__init__()
        self.line = Line(node, "node", 76, self.inside, self.pid)
        self.route_by(self.line)
        self.address = self.line.address

    def part(self, others: Iterable[NodeNetwork], *, sentinel: bool = False) -> None:
        """Keep the node apart from other nodes, and from Sentinel."""
        here = self.address
        for other in others:
            _lose_between("from", here, "to", other.address)
            _lose_between("from", other.address, "to", here)
        if sentinel:
            _lose_between("from", here, "to", self.line.hub)
            _lose_between("from", here, "to", SENTINEL_HOST)
            _lose_between("iif", "lo", "to", here)


def _lose_between(*packets: str) -> None:
    _run("ip", "rule", "add", "priority", _APART, *packets, "blackhole")


def join_nodes() -> None:
    """No node is kept apart any more."""
    while subprocess.run(["ip", "rule", "del", "priority", _APART], capture_output=True, check=False).returncode == 0:
        pass
