"""A slot of a Redis Cluster on its way to another node. Its keys are on both nodes until all have moved, and a script
needs them all: scripts wait, in order, until the slot has settled (lua/include/settled.lua). Commands with one key go
on: to the node that has the slot, and, when that says ASK, to the one that gets it."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from weir.store.mux import SCRIPT, WIRE, Mux, Op
from weir.store.records import UNAVAILABLE
from weir.store.resp import command
from weir.store.topology import TAGS

_PAUSE: Final = 0.02
_ASKING: Final = command(b"ASKING")


def as_asking(op: Op) -> Op:
    """The operation in the form for the node that gets the slot; ASKING goes first, where a body does otherwise."""
    op[WIRE] = (_ASKING, b"", op[WIRE])
    return op


def first_wire(op: Op) -> bytes:
    """The command of an operation that names its slot; takes ASKING away."""
    wire: bytes | tuple[bytes, bytes, bytes] = op[WIRE]
    if isinstance(wire, bytes):
        return wire
    if wire[0] is _ASKING:
        op[WIRE] = wire[2]
        return wire[2]
    return wire[0]


async def _nowhere(protocol: asyncio.Protocol) -> None:
    raise OSError("it has no connection of its own")


class Moving(Mux):
    """In a place of `Topology.muxes` instead of the mux of its node, `source`: it only waits. What it holds fails at
    the deadline as everything does. `on_settled` hears that the slot stays where it is; a move that is done is MOVED.
    """

    def __init__(self, source: Mux, place: int, on_settled: "Callable[[Moving], None]", deadline: float) -> None:
        super().__init__(_nowhere, list, deadline=deadline)
        self.place = place
        self._source = source
        self._on_settled = on_settled
        self._probe = command(b"EXISTS", TAGS[place] + b":")
        self._look()

    def take_back(self, op: Op) -> None:
        """One that was not executed: it was called before all that came here since."""
        self._redo.append(op)

    def taken_back(self) -> list[Op]:
        ops, self._redo = self._redo, []
        return ops

    def hand_over(self) -> list[Op]:
        self._redo_first()
        return super().hand_over()

    def end(self) -> None:
        """Its operations have been handed over."""
        self._closed = True
        self._ticker.cancel()
        self.started.cancel()

    def still(self) -> None:
        """The node has said ASK to the question. All that was written before it is answered, so all is taken back."""
        self._redo_first()
        if not self._closed:
            self._loop.call_later(_PAUSE, self._look)

    def _look(self) -> None:
        """A key that is nowhere: 0 here, ASK while the slot moves, MOVED when it has."""
        if not self._closed:
            self._source.read(self._probe, self._seen, self)

    def _seen(self, raw: Any, _moving: "Moving") -> None:
        if raw is UNAVAILABLE:
            self.still()
        else:
            self._on_settled(self)

    def _write(self, op: Op, dirty: bool) -> None:
        if op[SCRIPT]:
            self._waiting.append(op)
        else:
            self._source._write(op, dirty)
