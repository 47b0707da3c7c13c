"""PING: answered at once."""

from __future__ import annotations

from weir.router.commands.handler import Handler, handles
from weir.wire.smp.commands import PING

_PONG = b"PONG"


@handles(PING)
class PingHandler(Handler):
    __slots__ = ()

    traces_itself = True  # the span of a PING would say nothing

    def begin(self) -> None:
        self.session.shared.answers.by_command[PING] += 1
        self.origin.put(self.index, self.t.corr_id, b"", _PONG)
