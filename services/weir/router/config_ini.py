"""The names in the reference server's smp-server.ini, and what becomes of each in Weir."""

from __future__ import annotations

from weir.config.file import IniNames, Raw, Renamed

# Keys that have another name in Weir. A key with the same section and name needs no line.
_RENAMED = {
    ("transport", "host"): Renamed("transport", "hosts"),
    ("transport", "port"): Renamed("transport", "ports"),
    ("transport", "control_port"): Renamed("control", "port"),
    ("store_log", "expire_messages_days"): Renamed("queues", "message_ttl", "d"),
    ("store_log", "expire_ntfs_hours"): Renamed("queues", "notification_ttl", "h"),
    ("web", "http"): Renamed("http", "port"),
}
# Keys without a use in Weir, and the reason. `weir import` prints the reason; the router ignores the key.
_STORE = "all state is in Redis"
_WEB = "the page is served by the edges; put a TLS proxy in front of it"
_NAMES = "name resolution is not part of Weir"
_LEFT_OUT = {
    ("store_log", "enable"): _STORE,
    ("store_log", "store_queues"): _STORE,
    ("store_log", "store_messages"): _STORE,
    ("store_log", "restore_messages"): _STORE,
    ("store_log", "db_connection"): _STORE,
    ("store_log", "db_schema"): _STORE,
    ("store_log", "db_pool_size"): _STORE,
    ("store_log", "db_store_log"): _STORE,
    ("store_log", "db_deleted_ttl"): _STORE,
    ("store_log", "expire_messages_on_start"): "the sweeper always runs",
    ("store_log", "expire_messages_on_send"): "messages always expire when they are read, too",
    ("store_log", "log_stats"): "stats are in Redis and at /metrics",
    ("store_log", "prometheus_interval"): "/metrics is always current",
    ("transport", "log_tls_errors"): "use [telemetry] log_level = debug",
    ("transport", "websockets"): "web sockets are not supported",
    ("web", "static_path"): _WEB,
    ("web", "https"): _WEB,
    ("web", "cert"): _WEB,
    ("web", "key"): _WEB,
    ("names", "enable"): _NAMES,
    ("names", "resolver_endpoint"): _NAMES,
    ("names", "resolver_auth"): _NAMES,
    ("names", "resolver_timeout_ms"): _NAMES,
    ("names", "resolver_max_response_bytes"): _NAMES,
    ("names", "resolver_concurrency"): _NAMES,
}


_NO_HOST = "<hostnames>"  # `smp-server init` writes this placeholder if it is given no host name


def _left_out_because(raw: Raw) -> str | None:
    if (raw.section, raw.key, raw.value) == ("transport", "host", _NO_HOST):
        return "a placeholder; set [transport] hosts"
    return _LEFT_OUT.get((raw.section, raw.key))


SMP_SERVER_INI = IniNames(_RENAMED, _left_out_because)
