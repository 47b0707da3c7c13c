"""weir.toml: the edges read every setting of the spec from it, and find nothing in it that they do not know."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tests.operator.world import router_of
from weir.router.config import RouterConfig, load
from weir_operator.kinds.routers.config import redis_url
from weir_operator.kinds.smprouter.config import config_file


def loaded(tmp_path: Path, **spec: Any) -> RouterConfig:
    """Read the file with the edge's own reader, which refuses unknown keys."""
    path = tmp_path / "weir.toml"
    path.write_text(config_file(router_of(**spec), ["a.example", "b.onion"], 443))
    return load(path, {})


def test_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    assert config.transport.hosts == ("a.example", "b.onion")
    assert config.transport.ports == (5223,)
    assert config.transport.public_port == 443
    assert config.transport.identity == Path("/etc/weir/edge")
    assert config.redis.url == "redis://r-redis:6379/0"
    assert config.redis.placement_key == Path("/etc/weir/edge/placement.key")
    assert config.redis.connect_timeout == 60
    assert config.queues.quota == 128
    assert config.queues.message_ttl == 21 * 86400
    assert config.queues.inactive_ttl == 0
    assert config.inactive_clients.disconnect is True
    assert config.inactive_clients.ttl == 6 * 3600
    assert config.drain.rate == 500
    assert config.drain.grace == 60
    assert config.http.metrics_port == 0  # on the pod's HTTP port, which ServiceMonitors scrape
    assert config.telemetry.log_format == "json"
    assert config.telemetry.traces is None
    assert (config.rollups.router, config.rollups.interval) == ("r", 60)


def test_every_setting(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        limits={
            "quota": 7,
            "messageTTL": "2d",
            "notificationTTL": "3h",
            "inactiveQueueTTL": "30d",
            "idleClientTTL": "0s",
            "maxClients": 9,
        },
        proxy={"enabled": False, "allowPrivateRelays": True, "ownDomains": ["x.org", "y.org"]},
        redis={
            "durability": "replicated",
            "replicas": 2,
            "replicaTimeout": "300ms",
            "external": {"url": "redis+cluster://h1,h2"},
        },
        telemetry={
            "logLevel": "debug",
            "logFormat": "text",
            "traces": {"endpoint": "http://c:4318", "sampleRatio": 0.5, "sessions": "services"},
        },
        rollout={"drainRate": 3, "gracePeriodSeconds": 90},
        maintenance={"newQueues": False},
        information={
            "sourceCode": "https://s",
            "adminPgpFingerprint": "F",
            "hostingType": "owned",
            "serverCountry": "CH",
        },
    )
    assert (config.queues.quota, config.queues.message_ttl, config.queues.notification_ttl) == (7, 172800, 10800)
    assert config.queues.inactive_ttl == 30 * 86400
    assert config.inactive_clients.disconnect is False
    assert config.transport.max_clients == 9
    assert (config.proxy.enable, config.proxy.allow_local_relays) == (False, True)
    assert config.proxy.own_server_domains == ("x.org", "y.org")
    assert (config.redis.durability, config.redis.replicas, config.redis.replica_timeout) == ("replicated", 2, 0.3)
    assert config.redis.url == "redis+cluster://h1,h2"
    assert (config.telemetry.log_level, config.telemetry.log_format) == ("debug", "text")
    assert (config.telemetry.traces, config.telemetry.sample_ratio) == ("http://c:4318", 0.5)
    assert config.telemetry.trace_sessions == "services"
    assert (config.drain.rate, config.drain.grace) == (3, 90)
    assert config.auth.new_queues is False
    assert (config.information.source_code, config.information.admin_pgp_fingerprint) == ("https://s", "F")
    assert (config.information.hosting_type, config.information.server_country) == ("owned", "CH")


def test_a_url_in_a_secret_is_not_in_the_file(tmp_path: Path) -> None:
    router = router_of(redis={"external": {"urlSecret": {"name": "s"}}})
    assert redis_url(router) is None
    assert "url" not in tomllib.loads(config_file(router, ["h"], 1))["redis"]


def test_text_is_quoted() -> None:
    text = 'a "quoted" \\ name\nöther'
    router = router_of(information={"sourceCode": text})
    assert tomllib.loads(config_file(router, ["h"], 1))["information"]["source_code"] == text
