"""What both ends of a connection know once they have shaken hands, as far as bytes depend on it."""

from dataclasses import dataclass, field

from weir.wire.encoding import short
from weir.wire.versions import AUTH_CMDS, NTF_AUTH_BATCH, SERVICE_CERTS


@dataclass(slots=True)
class Framing:
    """How transmissions are written in a session: the TLS session id, and what the agreed version implies."""

    session_id: bytes
    version: int
    imply_session_id: bool = field(init=False)
    """The session id is authorised but not sent."""
    service_auth: bool = field(init=False)
    """An authorisation is followed by the service's signature, or `0`."""
    auth_prefix: bytes = field(init=False, repr=False)
    """The length-prefixed session id that authorised bytes begin with."""
    server_prefix: bytes = field(init=False, repr=False)
    """What a router's transmissions begin with: no authorisation, and the session id where it is sent."""

    def _frame(self, imply_session_id: bool, service_auth: bool) -> None:
        self.imply_session_id = imply_session_id
        self.service_auth = service_auth
        self.auth_prefix = short(self.session_id)
        self.server_prefix = b"\0" if imply_session_id else b"\0" + self.auth_prefix


@dataclass(slots=True)
class Session(Framing):
    """An SMP session: the session id is implied from version 7, services sign from version 16."""

    def __post_init__(self) -> None:
        self._frame(self.version >= AUTH_CMDS, self.version >= SERVICE_CERTS)

    @staticmethod
    def forwarded(session_id: bytes, version: int) -> "Session":
        """For a command inside RFWD: the client's version, but the session id is always implied."""
        session = Session(session_id, version)
        session._frame(True, session.service_auth)
        return session


@dataclass(slots=True)
class NtfSession(Framing):
    """An NTF session: from version 2 the session id is implied and blocks hold batches."""

    batch: bool = field(init=False)

    def __post_init__(self) -> None:
        self.batch = self.version >= NTF_AUTH_BATCH
        self._frame(self.batch, False)
