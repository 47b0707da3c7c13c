"""weir.toml of the notification router."""

from __future__ import annotations

import tomllib

from tests.operator.world import router_of
from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.config import config_file


def test_the_notification_routers_file() -> None:
    push = {
        "apns": {"secretName": "s", "keyId": "K" * 10, "teamId": "T" * 10, "environment": "sandbox"},
        "fcm": {"secretName": "f"},
    }
    parsed = tomllib.loads(config_file(router_of(names.NTF_ROUTER, push=push), ["h"], 443))
    assert parsed["transport"]["ports"] == [5443]
    assert parsed["apns"] == {
        "key": "/etc/weir/apns/authkey.p8",
        "key_id": "K" * 10,
        "team_id": "T" * 10,
        "environment": "sandbox",
    }
    assert parsed["fcm"] == {"service_account": "/etc/weir/fcm/service-account.json"}
