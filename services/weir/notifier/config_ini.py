"""The names in the reference server's ntf-server.ini, and what becomes of each in Weir."""

from __future__ import annotations

from weir.config.file import IniNames, Raw, Renamed

# Keys that have another name in Weir. A key with the same section and name needs no line.
_RENAMED = {
    ("transport", "host"): Renamed("transport", "hosts"),
    ("transport", "port"): Renamed("transport", "ports"),
    ("transport", "control_port"): Renamed("control", "port"),
}
# Keys without a use in Weir, and the reason. `weir import` prints the reason; the router ignores the key.
_STORE = "all state is in Redis"
_LEFT_OUT = {
    ("store_log", "enable"): _STORE,
    ("store_log", "db_connection"): _STORE,
    ("store_log", "db_schema"): _STORE,
    ("store_log", "db_pool_size"): _STORE,
    ("store_log", "db_store_log"): _STORE,
    ("store_log", "db_deleted_ttl"): _STORE,
    ("store_log", "log_stats"): "set [statistics] path",
    ("store_log", "prometheus_interval"): "/metrics is always current",
    ("transport", "log_tls_errors"): "use [telemetry] log_level = debug",
    ("transport", "websockets"): "web sockets are not supported",
}

_NO_HOST = "<hostnames>"  # `ntf-server init` writes this placeholder if it is given no host name


def _left_out_because(raw: Raw) -> str | None:
    if (raw.section, raw.key, raw.value) == ("transport", "host", _NO_HOST):
        return "a placeholder; set [transport] hosts"
    return _LEFT_OUT.get((raw.section, raw.key))


NTF_SERVER_INI = IniNames(_RENAMED, _left_out_because)

ENVIRONMENT = {"APNS_KEY_FILE": ("apns", "key"), "APNS_KEY_ID": ("apns", "key_id")}
"""Environment variables of the reference server, and the settings that they set here."""
