"""The configuration file of an NTFRouter's pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weir_operator.kinds import names
from weir_operator.kinds.routers.config import Sections, render, shared_sections
from weir_operator.kinds.routers.model import Router


def config_file(router: Router, hosts: list[str], port: int) -> str:
    return render(_sections(router, hosts, port))


def _sections(router: Router, hosts: list[str], port: int) -> Sections:
    push: Mapping[str, Any] = router.spec["push"]
    shared = shared_sections(router, hosts, port, names.NTF_TARGET_PORT)
    return {
        **shared,
        "redis": shared["redis"] | {"storage_key": f"{names.SECRET_DIR}/{names.STORAGE_KEY}"},
        "subscriber": _subscriber(router.spec["subscriber"]),
        "push": {"allow_test": push["allowTest"]},
        "apns": _apns(push["apns"]) if "apns" in push else {},
        "web_push": _web_push(router) if push["webPush"]["enabled"] else {},
    }


def _subscriber(subscriber: Mapping[str, Any]) -> dict[str, Any]:
    section = {
        "host_mode": subscriber["hostMode"].lower(),
        "required_host_mode": subscriber["requireHostMode"],
        "socks_mode": subscriber["socksMode"].lower(),
        "own_server_domains": list(subscriber.get("ownDomains") or ()),
        "use_service_credentials": subscriber["serviceCredentials"],
        "allow_local_servers": subscriber["allowPrivateServers"],
    }
    if "socksProxy" in subscriber:
        section["socks_proxy"] = subscriber["socksProxy"]
    return section


def _apns(apns: Mapping[str, Any]) -> dict[str, Any]:
    section = {
        "key": f"{names.APNS_DIR}/{apns['key']}",
        "key_id": apns["keyId"],
        "team_id": apns["teamId"],
        "topic": apns["topic"],
        "environment": apns["environment"],
    }
    if "host" in apns:
        section["host"] = apns["host"]
    if "ca" in apns:
        section["ca"] = f"{names.APNS_CA_DIR}/{apns['ca']['key']}"
    return section


def vapid_source(router: Router) -> tuple[str, str]:
    """The Secret with the keys of Web Push, and the name of their file in it."""
    web_push = router.spec["push"]["webPush"]
    if "secretName" in web_push:
        return web_push["secretName"], web_push["key"]
    return names.vapid(router.name), names.VAPID_KEY


def _web_push(router: Router) -> dict[str, Any]:
    web_push = router.spec["push"]["webPush"]
    _, file = vapid_source(router)
    section = {
        "vapid_key": f"{names.WEB_PUSH_DIR}/{file}",
        "allow_local": web_push["allowPrivateEndpoints"],
    }
    if "subject" in web_push:
        section["subject"] = web_push["subject"]
    if "ca" in web_push:
        section["ca"] = f"{names.WEB_PUSH_CA_DIR}/{web_push['ca']['key']}"
    return section
