"""The properties of an SMP session that decide how its transmissions are encoded."""

from dataclasses import dataclass

from weir.wire.frame import Framing
from weir.wire.versions import AUTH_CMDS, SERVICE_CERTS


@dataclass(slots=True)
class Session(Framing):
    """An SMP session: the session id is implied from version 7, services sign from version 16."""

    def __post_init__(self) -> None:
        self._frame(self.version >= AUTH_CMDS, self.version >= SERVICE_CERTS)

    @staticmethod
    def forwarded(session_id: bytes, version: int) -> "Session":
        """Make the session of a command inside RFWD: it has the client's version and always implies the session id."""
        session = Session(session_id, version)
        session._frame(True, session.service_auth)
        return session
