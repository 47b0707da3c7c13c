"""The configuration file of a router's pods: the sections that all kinds share, and the file as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from weir.config.toml import toml_section
from weir_operator.kinds import names
from weir_operator.kinds.routers.model import Router, embedded_settings

_LONGEST_NAME = 63  # of a router in its rollups
_SNAKE = re.compile(r"(?<!^)(?=[A-Z])")

Sections = Mapping[str, Mapping[str, Any]]


def render(sections: Sections) -> str:
    """`weir.toml`. Sections without values are left out."""
    return "\n".join(line for name, values in sections.items() if values for line in toml_section(name, values))


def config_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def redis_url(router: Router) -> str | None:
    """The URL of Redis. None when it is in a Secret."""
    if embedded_settings(router) is not None:
        return f"redis://{names.redis(router.name)}:{names.REDIS_PORT}/0"
    url: str | None = router.spec["redis"]["external"].get("url")
    return url


def shared_sections(router: Router, hosts: list[str], public_port: int, port: int) -> dict[str, dict[str, Any]]:
    """Everything but secrets, which come by environment variables and files. `port` is the one to listen on."""
    spec = router.spec
    redis, rollout, telemetry = spec["redis"], spec["rollout"], spec["telemetry"]
    idle = spec["limits"]["idleClientTTL"]
    sections: dict[str, dict[str, Any]] = {
        "transport": {
            "hosts": hosts,
            "ports": [port],
            "public_port": public_port,
            "identity": names.SECRET_DIR,
            "max_clients": spec["limits"]["maxClients"],
        },
        "redis": {
            "placement_key": f"{names.SECRET_DIR}/{names.PLACEMENT_KEY}",
            "durability": redis["durability"],
            "replicas": redis["replicas"],
            "replica_timeout": redis["replicaTimeout"],
            # A new Redis may wait for its volume. A pod that gave up would be restarted after longer and longer pauses.
            "connect_timeout": "60s",
        },
        "control": {"port": names.CONTROL_PORT},
        "inactive_clients": {"disconnect": not _zero(idle)} | ({} if _zero(idle) else {"ttl": idle}),
        "drain": {"grace": f"{rollout['gracePeriodSeconds']}s", "rate": rollout["drainRate"]},
        # Metrics are on the pod's HTTP port, which NetworkPolicies keep inside and ServiceMonitors scrape.
        "http": {"port": names.HTTP_PORT, "metrics_port": 0},
        "telemetry": {"log_level": telemetry["logLevel"], "log_format": telemetry["logFormat"]},
        "rollups": {"router": router.name[:_LONGEST_NAME]},
        "information": {_SNAKE.sub("_", key).lower(): value for key, value in spec["information"].items()},
    }
    if "prefix" in redis:
        sections["redis"]["prefix"] = redis["prefix"]
    url = redis_url(router)
    if url is not None:
        sections["redis"]["url"] = url
    if "traces" in telemetry:
        traces = telemetry["traces"]
        sections["telemetry"] |= {
            "traces": traces["endpoint"],
            "sample_ratio": traces["sampleRatio"],
            "trace_sessions": traces["sessions"],
        }
    return sections


def _zero(duration: str) -> bool:
    return duration.rstrip("msh d").strip("0") == ""
