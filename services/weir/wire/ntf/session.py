"""The properties of an NTF session that decide how its transmissions are encoded."""

from dataclasses import dataclass, field

from weir.wire.frame import Framing
from weir.wire.versions import NTF_AUTH_BATCH


@dataclass(slots=True)
class NtfSession(Framing):
    """An NTF session: from version 2 the session id is implied and blocks hold batches."""

    batch: bool = field(init=False)

    def __post_init__(self) -> None:
        self.batch = self.version >= NTF_AUTH_BATCH
        self._frame(self.batch, False)
