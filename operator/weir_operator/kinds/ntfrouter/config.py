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
    sections = {
        "transport": {
            "hosts": hosts,
            "ports": [names.NTF_TARGET_PORT],
            "public_port": port,
            "identity": names.SECRET_DIR,
        },
        **shared_sections(router),
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
