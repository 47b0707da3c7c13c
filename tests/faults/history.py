"""What the clients of a run did and saw, line by line: the only thing that the checker judges.

Every line is one JSON object. `at` is in seconds since the run began, `is` says which kind of line it is:

    queue    queue, id, service, key, op        a queue, its service and its key's name; it exists when the run begins,
                                                or, with `op`, that NEW has made it and subscribes to it
    open     conn, edge, service                a client connected
    close    conn                               a client saw the end of its connection, or closed it
    call     op, conn, name, queue, …           a command is about to leave
    done     op, result, error                  its answer: ok, refused (the router said no), or unknown (no answer, or
                                                an answer that leaves open what became of the command)
    event    conn, name, queue or service, …    MSG, END, DELD, ENDS or ALLS reached a client; `op` if it was an answer
    fault    what                               what was broken or mended
    alive    conn                               a connection that answered PING when all faults were mended
    rested                                      nobody sends any more, and what was under way has arrived
    settled                                     the same after the probe messages
    drained                                     every message that was left has been fetched
    exists   queue, exists                      what the router says about a queue in the end
    totals   service, count, hash               what SUBS answers in the end
    holds    queue, what, value                 what the router keeps for a queue in the end

The order of the lines is the order in which the one process with all clients saw things.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]


class Writer:
    """Keeps the history in memory and in a file. A line is in the kernel when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._began = time.monotonic()
        self._ops = 0
        self.lines: list[Line] = []

    def write(self, is_: str, **fields: Any) -> None:
        line = {"at": round(time.monotonic() - self._began, 3), "is": is_, **fields}
        self.lines.append(line)
        self._file.write(json.dumps(line).encode() + b"\n")

    def call(self, conn: int, name: str, **fields: Any) -> int:
        """Write that a command is about to leave. Return its number."""
        self._ops += 1
        self.write("call", op=self._ops, conn=conn, name=name, **fields)
        return self._ops


def read(path: Path) -> Iterator[Line]:
    with path.open() as file:
        for text in file:
            yield json.loads(text)
