"""Ports for servers that must know theirs before they start, so that no two tests get the same one.

Asking the kernel for a free port and closing it again is a race: another process, or the near end of somebody's
connection, may get that port next. So ports come from below the range that the kernel hands out, in blocks of a
hundred. A process that wants a port locks a block for as long as it lives, against the other workers of this run and
against other runs on this machine. A node of a Redis Cluster also listens 10,000 above its port; no block lies there.
"""

import fcntl
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

_LOCKS = Path(tempfile.gettempdir()) / f"weir-test-ports-{os.getuid()}"
_BLOCKS = range(12_000, 22_000, 100)
_held: list[int] = []  # descriptors; closing one would free its block


def _blocks() -> Iterator[range]:
    _LOCKS.mkdir(exist_ok=True)
    for first in _BLOCKS:
        descriptor = os.open(_LOCKS / str(first), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        _held.append(descriptor)
        yield range(first, first + 100)
    raise RuntimeError(f"other processes hold all blocks of ports ({_LOCKS})")


def free_port() -> int:
    """A port that nobody listens on. A process gets the same one again only after all others of its block."""
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port := next(_ports)))
            except OSError:
                continue
            return port


_ports = itertools.chain.from_iterable(map(itertools.cycle, _blocks()))
