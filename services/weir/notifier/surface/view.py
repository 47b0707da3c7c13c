"""An edge as the page, the metrics and the control port of the NTF router see it."""

from __future__ import annotations

from typing import Protocol

from weir.notifier.config import NotifierConfig
from weir.notifier.store.store import Store
from weir.notifier.surface.servers import ServerInfo, own_servers
from weir.redis.errors import Unavailable
from weir.surface import edge
from weir.surface.cached import Cached
from weir.surface.fleet import Fleet
from weir.surface.outage import Outage

OUTAGE = Outage((Unavailable,), "Redis does not answer")


class EdgeView(edge.EdgeView, Protocol):
    @property
    def config(self) -> NotifierConfig: ...
    @property
    def store(self) -> Store: ...


_SERVERS_FRESH = 2.0  # seconds: edges publish the state of servers every few seconds


class NtfFleet(Fleet):
    """The numbers of the fleet, and the state of the operator's own SMP servers."""

    def __init__(self, edge: EdgeView, *, for_everybody: bool = True) -> None:
        super().__init__(edge, for_everybody=for_everybody)
        self._ntf_edge = edge
        self._servers = Cached(self._read_servers, _SERVERS_FRESH if for_everybody else 0.0)

    async def servers(self) -> list[ServerInfo]:
        return await self._servers.get()

    async def _read_servers(self) -> list[ServerInfo]:
        return own_servers(server.state for server in await self._ntf_edge.store.servers.all())
