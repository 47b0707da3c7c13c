"""Reads one configuration file, TOML or the reference's ini, into raw settings that know their file and line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Problem:
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True)
class Raw:
    """One setting as it was written. `shown_*` are the words of its file when they differ from ours."""

    section: str
    key: str
    value: object
    file: str
    line: int
    shown_section: str = ""
    shown_key: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown_section", self.shown_section or self.section)
        object.__setattr__(self, "shown_key", self.shown_key or self.key)

    def problem(self, text: str) -> Problem:
        return Problem(self.file, self.line, text)


@dataclass(frozen=True)
class Renamed:
    """A key of the reference's ini that is ours under another name, with the unit its bare numbers have there."""

    section: str
    key: str
    unit: str = ""


# The reference's ini keys with a meaning here; keys of the same section and name need no line.
INI_RENAMED = {
    ("transport", "host"): Renamed("transport", "hosts"),
    ("transport", "port"): Renamed("transport", "ports"),
    ("transport", "control_port"): Renamed("control", "port"),
    ("store_log", "expire_messages_days"): Renamed("queues", "message_ttl", "d"),
    ("store_log", "expire_ntfs_hours"): Renamed("queues", "notification_ttl", "h"),
    ("web", "http"): Renamed("http", "port"),
}
# The reference's ini keys without a meaning here, and why: `weir import` tells, the router passes over them.
_STORE = "all state is in Redis"
_WEB = "the page is served by the edges; put a TLS proxy in front of it"
_NAMES = "name resolution is not part of Weir"
INI_LEFT_OUT = {
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
    ("store_log", "expire_messages_on_send"): "messages always expire on the way, too",
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


_NO_HOST = "<hostnames>"  # what `smp-server init` writes when it knows no name


def left_out_because(raw: Raw) -> str | None:
    """Why a setting of the reference's ini has no meaning here; None when it has one."""
    if (raw.section, raw.key, raw.value) == ("transport", "host", _NO_HOST):
        return "a placeholder; set [transport] hosts"
    return INI_LEFT_OUT.get((raw.section, raw.key))


def read_config_file(path: Path, problems: list[Problem]) -> list[Raw]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        problems.append(Problem(str(path), 0, f"cannot be read: {error.strerror}"))
        return []
    except UnicodeDecodeError:
        problems.append(Problem(str(path), 0, "is not UTF-8 text"))
        return []
    if path.suffix == ".ini":
        taken, _ = read_ini(path.name if path.parent == Path() else str(path), text, problems)
        return taken
    return _read_toml(str(path), text, problems)


def _read_toml(file: str, text: str, problems: list[Problem]) -> list[Raw]:
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        problems.append(Problem(file, line, re.sub(r" \(at .*\)$", "", str(error)).lower()))
        return []
    lines = _toml_lines(text)
    raws = []
    for section, content in tree.items():
        if not isinstance(content, dict):
            problems.append(Problem(file, lines.get((section, ""), 0), f"{section} stands outside of a [section]"))
            continue
        if not content:
            raws.append(Raw(section, "", "", file, lines.get((section, ""), 0)))
        for key, value in content.items():
            raws.append(Raw(section, key, value, file, lines.get((section, key), 0)))
    return raws


def _toml_lines(text: str) -> dict[tuple[str, str], int]:
    """Where each (section, key) stands. tomllib does not say, so the lines are scanned for headers and keys."""
    lines: dict[tuple[str, str], int] = {}
    prefix: list[str] = []
    for at, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([^\[\]]+?)\s*\]", line):
            prefix = [part.strip().strip("\"'") for part in header[1].split(".")]
            path = prefix
        elif key := re.match(r"\s*([A-Za-z0-9_.\"' -]+?)\s*=", line):
            path = prefix + [part.strip().strip("\"'") for part in key[1].split(".")]
        else:
            continue
        lines.setdefault((path[0], path[1] if len(path) > 1 else ""), at)
    return lines


def read_ini(file: str, text: str, problems: list[Problem]) -> tuple[list[Raw], list[Raw]]:
    """(settings taken over, settings of the reference without a meaning here).

    Weir's own sections may stand in the same file; `#` and `;` start a comment line, `=` and `:` both assign.
    """
    taken: list[Raw] = []
    left_out: list[Raw] = []
    shown_section = section = ""
    for at, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if header := re.fullmatch(r"\[([^\]]+)\]", line):
            shown_section, section = header[1], header[1].lower()
            continue
        assignment = re.match(r"([A-Za-z0-9_]+)\s*[=:]\s*(.*)$", line)
        if assignment is None or not section:
            problems.append(Problem(file, at, "expected [SECTION] or key = value"))
            continue
        raw = Raw(section, assignment[1], assignment[2], file, at, shown_section)
        renamed = INI_RENAMED.get((section, raw.key))
        if left_out_because(raw) is not None:
            left_out.append(raw)
        else:
            taken.append(raw if renamed is None else _rename(renamed, raw))
    return taken, left_out


def _rename(renamed: Renamed, raw: Raw) -> Raw:
    value: Any = raw.value
    if renamed.unit and str(value).strip().isdigit():
        value = f"{value}{renamed.unit}"
    return Raw(renamed.section, renamed.key, value, raw.file, raw.line, raw.shown_section, raw.key)
