"""A protocol, as far as the transport must know it. SMP's value is in smp.py, NTF's in ntf.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weir.transport.handshake import ServerHandshake
from weir.transport.identity import OnlineIdentity, ServerIdentity
from weir.wire.versions import VersionRange

if TYPE_CHECKING:
    from weir.transport.connection import Connection

C = TypeVar("C", bound="Connection")


@dataclass(frozen=True)
class Protocol(Generic[C]):
    alpn: str
    block_size: int
    versions: VersionRange
    """Offered by a listener that is not configured otherwise."""
    ask_client_certificate: bool
    handshake: Callable[[OnlineIdentity, VersionRange], ServerHandshake[Any]]
    """The server's side of one handshake. The client's side is made by the protocol's `connect`."""
    connection: Callable[..., C]
    """The class of a listener's connections."""

    def identity(self, directory: Path) -> ServerIdentity:
        """Load the identity that a listener of this protocol presents. Raises UnusableFile or OSError."""
        return ServerIdentity(directory, alpn=self.alpn, ask_client_certificate=self.ask_client_certificate)
