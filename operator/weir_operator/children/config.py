"""The configuration file of an edge, from the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from weir_operator import names
from weir_operator.model import Router

_SNAKE = re.compile(r"(?<!^)(?=[A-Z])")


def config_file(router: Router, hosts: list[str], port: int) -> str:
    """`weir.toml`: everything but secrets, which come by environment and files."""
    sections = _smp(router, hosts, port) if router.smp else _ntf(router, hosts, port)
    return "\n".join(_section(name, values) for name, values in sections.items() if values)


def config_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def redis_url(router: Router) -> str | None:
    """The URL as far as it is no secret."""
    if router.embedded is not None:
        return f"redis://{names.redis(router.name)}:{names.REDIS_PORT}/0"
    url: str | None = router.spec["redis"]["external"].get("url")
    return url


def _shared(router: Router) -> dict[str, dict[str, Any]]:
    spec = router.spec
    redis = spec["redis"]
    telemetry = spec["telemetry"]
    sections: dict[str, dict[str, Any]] = {
        "redis": {
            "placement_key": f"{names.SECRET_DIR}/{names.PLACEMENT_KEY}",
            "durability": redis["durability"],
            "replicas": redis["replicas"],
            "replica_timeout": redis["replicaTimeout"],
            # A new Redis may wait for its volume: an edge that gave up would be restarted later and later.
            "connect_timeout": "60s",
        },
        "http": {"port": names.HTTP_PORT},
        "drain": {"grace": f"{spec['rollout']['gracePeriodSeconds']}s"},
        "telemetry": {"log_level": telemetry["logLevel"], "log_format": telemetry["logFormat"]},
    }
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


def _smp(router: Router, hosts: list[str], port: int) -> dict[str, dict[str, Any]]:
    spec = router.spec
    limits, proxy = spec["limits"], spec["proxy"]
    shared = _shared(router)
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


def _ntf(router: Router, hosts: list[str], port: int) -> dict[str, dict[str, Any]]:
    shared = _shared(router)
    push: Mapping[str, Any] = router.spec["push"]
    sections = {
        "transport": {
            "hosts": hosts,
            "ports": [names.NTF_TARGET_PORT],
            "public_port": port,
            "identity": names.SECRET_DIR,
        },
        **shared,
    }
    if "apns" in push:
        apns = push["apns"]
        sections["apns"] = {
            "key": f"{names.APNS_DIR}/authkey.p8",
            "key_id": apns["keyId"],
            "team_id": apns["teamId"],
            "environment": apns["environment"],
        }
    if "fcm" in push:
        sections["fcm"] = {"service_account": f"{names.FCM_DIR}/service-account.json"}
    return sections


def _zero(duration: str) -> bool:
    return duration.rstrip("msh d").strip("0") == ""


def _section(name: str, values: Mapping[str, Any]) -> str:
    lines = [f"[{name}]"]
    lines += [f"{key} = {_value(value)}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A TOML value; TOML's basic strings are JSON's."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
