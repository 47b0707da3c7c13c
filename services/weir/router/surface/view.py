"""An edge as the page, the metrics and the control port of the SMP router see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from weir.redis.errors import Unavailable
from weir.router.config import RouterConfig
from weir.router.store.store import Store
from weir.surface import edge
from weir.surface.outage import Outage

OUTAGE = Outage((Unavailable,), "Redis does not answer")


class ClientInfo(NamedTuple):
    """One connected client, without its address and its ids. Times are Unix seconds."""

    id: int
    version: int
    created: float
    rcv_active: float
    snd_active: float
    subs: int
    ntf_subs: int
    outgoing: int
    service: bool


class EdgeView(edge.EdgeView, Protocol):
    @property
    def config(self) -> RouterConfig: ...
    @property
    def store(self) -> Store: ...
    def clients(self) -> Iterable[ClientInfo]: ...
    def trace_session(self, client: int, on: bool) -> bool:
        """Trace every command of one client. Return False if there is no such client."""
