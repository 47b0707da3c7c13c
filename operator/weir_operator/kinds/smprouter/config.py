"""The configuration file of an SMPRouter's edges."""

from __future__ import annotations

import re

from weir_operator.kinds import names
from weir_operator.kinds.routers.config import Sections, render, shared_sections
from weir_operator.kinds.routers.model import Router

_SNAKE = re.compile(r"(?<!^)(?=[A-Z])")


def config_file(router: Router, hosts: list[str], port: int) -> str:
    return render(_sections(router, hosts, port))


def _sections(router: Router, hosts: list[str], port: int) -> Sections:
    spec = router.spec
    limits, proxy = spec["limits"], spec["proxy"]
    shared = shared_sections(router)
    idle = limits["idleClientTTL"]
    return {
        "transport": {
            "hosts": hosts,
            "ports": [names.SMP_PORT],
            "public_port": port,
            "identity": names.SECRET_DIR,
            "max_clients": limits["maxClients"],
        },
        "redis": shared["redis"],
        "queues": {
            "quota": limits["quota"],
            "message_ttl": limits["messageTTL"],
            "notification_ttl": limits["notificationTTL"],
            "inactive_ttl": limits["inactiveQueueTTL"],
        },
        "auth": {"new_queues": spec["maintenance"]["newQueues"]},
        "control": {"port": names.CONTROL_PORT},
        "inactive_clients": {"disconnect": not _zero(idle)} | ({} if _zero(idle) else {"ttl": idle}),
        "proxy": {
            "enable": proxy["enabled"],
            "allow_local_relays": proxy["allowPrivateRelays"],
            "own_server_domains": list(proxy.get("ownDomains") or ()),
        },
        "drain": shared["drain"] | {"rate": spec["rollout"]["drainRate"]},
        "http": shared["http"],
        "telemetry": shared["telemetry"],
        "information": {_SNAKE.sub("_", key).lower(): value for key, value in spec["information"].items()},
    }


def _zero(duration: str) -> bool:
    return duration.rstrip("msh d").strip("0") == ""
