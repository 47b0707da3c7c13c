"""The configuration file of an SMPRouter's edges."""

from __future__ import annotations

from weir_operator.kinds import names
from weir_operator.kinds.routers.config import Sections, render, shared_sections
from weir_operator.kinds.routers.model import Router


def config_file(router: Router, hosts: list[str], port: int) -> str:
    return render(_sections(router, hosts, port))


def _sections(router: Router, hosts: list[str], port: int) -> Sections:
    spec = router.spec
    limits, proxy = spec["limits"], spec["proxy"]
    shared = shared_sections(router, hosts, port, names.SMP_PORT)
    return {
        "transport": shared["transport"],
        "redis": shared["redis"],
        "queues": {
            "quota": limits["quota"],
            "message_ttl": limits["messageTTL"],
            "notification_ttl": limits["notificationTTL"],
            "inactive_ttl": limits["inactiveQueueTTL"],
        },
        "auth": {"new_queues": spec["maintenance"]["newQueues"]},
        "control": shared["control"],
        "inactive_clients": shared["inactive_clients"],
        "proxy": {
            "enable": proxy["enabled"],
            "allow_local_relays": proxy["allowPrivateRelays"],
            "own_server_domains": list(proxy.get("ownDomains") or ()),
        },
        "drain": shared["drain"],
        "http": shared["http"],
        "telemetry": shared["telemetry"],
        "rollups": shared["rollups"],
        "information": shared["information"],
    }
