"""What the settings that all programs share mean for the life of an edge."""

from __future__ import annotations

import resource
from dataclasses import replace

from weir.runtime.edge import EdgeConfig
from weir.runtime.settings import Drain, InactiveClients
from weir.transport.server import TransportConfig
from weir.transport.settings import Listening

_OTHER_DESCRIPTORS = 100  # Redis (a cluster has several nodes), listening sockets, viewers, files


def edge_config(
    listening: Listening,
    drain: Drain,
    inactive: InactiveClients,
    *,
    connections: int,
    limits: TransportConfig | None = None,
) -> EdgeConfig:
    """`connections` are those that the edge opens itself. `limits` has what only some programs configure."""
    transport = replace(
        limits or TransportConfig(),
        handshake_timeout=listening.handshake_timeout,
        half_open=listening.half_open,
        max_clients=listening.max_clients or _most_clients(connections),
        send_timeout=listening.send_timeout,
    )
    return EdgeConfig(
        listen=listening.listen,
        ports=listening.ports,
        transport=transport,
        drain_rate=drain.rate,
        drain_grace=drain.grace,
        idle_ttl=inactive.ttl if inactive.disconnect else None,
        idle_check=inactive.check_interval,
    )


def _most_clients(connections: int) -> int:
    """As many as file descriptors allow. The rest is for Redis, health, metrics, the control port and `connections`.

    An edge without free descriptors could not connect to Redis again, and would look dead to its orchestrator.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit - min(limit // 4, connections + _OTHER_DESCRIPTORS)
