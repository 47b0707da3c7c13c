"""weir.toml of the notification router."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.operator.world import router_of
from weir.notifier.config import NotifierConfig, load
from weir_operator.kinds import names
from weir_operator.kinds.ntfrouter.config import config_file

APNS = {"secretName": "s", "keyId": "K" * 10, "teamId": "T" * 10, "topic": "org.example.app"}


def loaded(tmp_path: Path, **spec: Any) -> NotifierConfig:
    """Read the file with the edge's own reader, which refuses unknown keys."""
    path = tmp_path / "weir.toml"
    path.write_text(config_file(router_of(names.NTF_ROUTER, **spec), ["a.example", "b.onion"], 443))
    return load(path, {})


def test_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.transport.hosts == ("a.example", "b.onion")
    assert config.transport.ports == (5443,)
    assert config.transport.public_port == 443
    assert config.transport.identity == Path("/etc/weir/edge")
    assert config.transport.max_clients == 0
    assert config.redis.url == "redis://r-redis:6379/0"
    assert config.redis.prefix == "ntf"
    assert config.redis.placement_key == Path("/etc/weir/edge/placement.key")
    assert config.redis.storage_key == Path("/etc/weir/edge/storage.key")
    assert config.redis.connect_timeout == 60
    subscriber = config.subscriber
    assert (subscriber.host_mode, subscriber.required_host_mode, subscriber.socks_proxy) == ("public", False, None)
    assert (subscriber.socks_mode, subscriber.own_server_domains) == ("onion", ())
    assert (subscriber.use_service_credentials, subscriber.allow_local_servers) == (True, False)
    assert config.push.allow_test is False
    assert config.apns.key is None
    assert config.web_push.vapid_key == Path("/etc/weir/web-push/vapid.key")
    assert (config.web_push.subject, config.web_push.allow_local, config.web_push.ca) == (None, False, None)
    assert config.control.port == 5224
    assert (config.inactive_clients.disconnect, config.inactive_clients.ttl) == (True, 6 * 3600)
    assert (config.drain.grace, config.drain.rate) == (60, 500)
    assert (config.http.port, config.http.metrics_port) == (8000, 0)
    assert (config.telemetry.log_level, config.telemetry.log_format) == ("info", "json")
    assert (config.rollups.router, config.rollups.interval) == ("r", 60)


def test_every_setting(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        limits={"idleClientTTL": "0s", "maxClients": 9},
        push={
            "apns": {**APNS, "key": "new.p8", "environment": "sandbox", "host": "h:8443", "ca": {"name": "a"}},
            "webPush": {
                "secretName": "v",
                "key": "mine.pem",
                "subject": "mailto:me@example.org",
                "allowPrivateEndpoints": True,
                "ca": {"name": "a", "key": "root.crt"},
            },
            "allowTest": True,
        },
        subscriber={
            "ownDomains": ["example.org"],
            "hostMode": "Onion",
            "requireHostMode": True,
            "socksProxy": "tor:9050",
            "socksMode": "Always",
            "serviceCredentials": False,
            "allowPrivateServers": True,
        },
        redis={"prefix": "other", "durability": "fsync", "external": {"url": "redis://x"}},
        rollout={"gracePeriodSeconds": 5, "drainRate": 7},
        information={"sourceCode": "https://s", "hostingCountry": "CH"},
    )
    apns = config.apns
    assert (apns.key, apns.key_id, apns.team_id) == (Path("/etc/weir/apns/new.p8"), "K" * 10, "T" * 10)
    assert (apns.topic, apns.environment, apns.host) == ("org.example.app", "sandbox", "h:8443")
    assert apns.ca == Path("/etc/weir/apns-ca/ca.crt")
    web_push = config.web_push
    assert web_push.vapid_key == Path("/etc/weir/web-push/mine.pem")
    assert (web_push.subject, web_push.allow_local) == ("mailto:me@example.org", True)
    assert web_push.ca == Path("/etc/weir/web-push-ca/root.crt")
    assert config.push.allow_test is True
    subscriber = config.subscriber
    assert (subscriber.host_mode, subscriber.required_host_mode) == ("onion", True)
    assert (subscriber.socks_proxy, subscriber.socks_mode) == ("tor:9050", "always")
    assert subscriber.own_server_domains == ("example.org",)
    assert (subscriber.use_service_credentials, subscriber.allow_local_servers) == (False, True)
    assert (config.redis.prefix, config.redis.url) == ("other", "redis://x")
    assert config.redis.durability == "fsync"
    assert config.inactive_clients.disconnect is False
    assert config.transport.max_clients == 9
    assert (config.drain.grace, config.drain.rate) == (5, 7)
    assert (config.information.source_code, config.information.hosting_country) == ("https://s", "CH")


def test_without_web_push_there_is_no_key_of_it(tmp_path: Path) -> None:
    assert loaded(tmp_path, push={"webPush": {"enabled": False}}).web_push.vapid_key is None
