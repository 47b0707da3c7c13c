"""A cluster slot that migrates to another node.

Redis Cluster migrates a slot key by key. Meanwhile its keys are on both nodes, and a script needs them all. So scripts
are queued, in order, until the migration ends. Commands with one key continue: they go to the source node, and to the
target node when the source node answers ASK.

    Topology.muxes[place]:   Mux of the source  ──TRYAGAIN or ASK──►  Moving  ──slot stays──►  Mux of the source
                                                                        └─────MOVED───────────►  Mux of the target

A probe asks the source for a key that does not exist: the answer 0 means that the slot is stable, ASK that it still
migrates, MOVED that the migration is complete.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from weir.redis.errors import UNAVAILABLE
from weir.redis.mux import Mux
from weir.redis.operations import WIRE, Op, needs_its_slot
from weir.redis.resp import command

_PAUSE: Final = 0.02
_ASKING: Final = command(b"ASKING")


def as_asking(op: Op) -> Op:
    """The operation in the form for the target node: ASKING goes first, in the place where a SEND has its body."""
    op[WIRE] = (_ASKING, b"", op[WIRE])
    return op


def first_wire(op: Op) -> bytes:
    """The part of an operation that contains its key. An ASKING in front is removed."""
    wire: bytes | tuple[bytes, bytes, bytes] = op[WIRE]
    if isinstance(wire, bytes):
        return wire
    if wire[0] is _ASKING:
        op[WIRE] = wire[2]
        return wire[2]
    return wire[0]


async def _no_connection(protocol: asyncio.Protocol) -> None:
    raise OSError("a migrating slot has no connection of its own")


class Moving(Mux):
    """Stands in for the mux of the source node while a slot migrates: it queues scripts and sends none.

    Queued commands fail at the usual deadline. `on_settled` is called when the slot stays at the source.
    """

    def __init__(
        self, source: Mux, place: int, tag: bytes, on_settled: "Callable[[Moving], None]", deadline: float
    ) -> None:
        super().__init__(_no_connection, list, deadline=deadline)
        self.place = place
        self._source = source
        self._on_settled = on_settled
        self._probe = command(b"EXISTS", tag + b":")
        self._ask_source()

    def take_back(self, op: Op) -> None:
        """Queue an operation that the source did not execute, before all that were queued since."""
        self._redo.append(op)

    def taken_back(self) -> list[Op]:
        ops, self._redo = self._redo, []
        return ops

    def hand_over(self) -> list[Op]:
        self._redo_first()
        return super().hand_over()

    def end(self) -> None:
        """Stop waiting. Call it after `hand_over`."""
        self._closed = True
        self._ticker.cancel()
        self.started.cancel()

    def still_migrating(self) -> None:
        """The source answered ASK to the probe. Answers come in order, so every refused operation is back by now."""
        self._redo_first()
        if not self._closed:
            self._loop.call_later(_PAUSE, self._ask_source)

    def _ask_source(self) -> None:
        if not self._closed:
            self._source.read(self._probe, self._probed, self)

    def _probed(self, raw: Any, _moving: "Moving") -> None:
        if raw is UNAVAILABLE:
            self.still_migrating()
        else:
            self._on_settled(self)

    def _write(self, op: Op, dirty: bool) -> None:
        if needs_its_slot(op):
            self._waiting.append(op)
        else:
            self._source._write(op, dirty)
