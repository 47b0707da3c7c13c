"""RSLV: refused, because Weir resolves no names. Names belong to a later version, but older clients may ask as well."""

from __future__ import annotations

from weir.router.commands.handler import Handler, encode_error, handles
from weir.wire.errors import Name, NameErrorTag
from weir.wire.smp.commands import RSLV

_NO_RESOLVER = Name(NameErrorTag.NO_RESOLVER)


@handles(RSLV)
class RslvHandler(Handler):
    __slots__ = ()

    traces_itself = True  # the span of a refusal would say nothing

    def begin(self) -> None:
        answers = self.session.shared.answers
        answers.by_command[RSLV] += 1
        answers.failed(RSLV, _NO_RESOLVER)
        self.origin.put(self.index, self.t.corr_id, b"", encode_error(self.origin.framing.version, _NO_RESOLVER))
