"""One record: what an edge did in one interval, as bytes.

The form is gzipped JSON, so `zcat` shows a record. Numbers that are 0 are left out. A histogram is a list: its lowest
bucket, and the counts of that bucket and all above.

A record takes at most 2 KiB. One that would be larger loses detail and no counts. In this order: the services with the
fewest queues are added up under "other"; neighbouring buckets of histograms are added up; the errors of a command are
added up; the fleet's gauges, which come again in the next record, are left out. A busy edge's record, 100,000 messages
a minute and three services, takes 1.9 KiB without any of that.
"""

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from weir.telemetry.rollups.fields import (
    COMMANDS,
    DRIFT,
    EVENTS,
    GAUGES,
    HISTOGRAMS,
    OTHER,
    OUTCOMES,
    PROGRAMS,
    ROLES,
    VERSION,
)
from weir.telemetry.rollups.histogram import LAST, Buckets, coarsen, merge

MAX_BYTES: Final = 2048
LONGEST_LABEL: Final = 64
LARGEST: Final = 2**53 - 1  # JSON's readers agree on integers up to here

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_EDGE = re.compile(r"[A-Za-z0-9]{1,32}")
_GZIP: Final = 31  # zlib's name for the gzip format
_LONGEST_TEXT: Final = 64 << 10
_MOST_SERVICES: Final = 100  # more never fit, and to try would take long
_ALL: Final = LAST + 1
_DETAILS: Final = (  # buckets added up; whether errors are; whether the fleet's gauges are left out
    (1, False, False),
    (2, False, False),
    (4, False, False),
    (4, True, False),
    (8, True, False),
    (32, True, False),
    (_ALL, True, False),
    (_ALL, True, True),
)
_COMMON: Final = ("version", "router", "program", "edge", "sequence", "start", "duration")
_TABLES: Final = ("commands", "events", "gauges", "histograms")

Counts = Mapping[str, int]


class Unreadable(ValueError):
    """The bytes are no record of this or an older version. The text says why, and repeats nothing of the bytes."""


class Newer(ValueError):
    """The record has a newer version of the schema."""

    def __init__(self, version: int) -> None:
        super().__init__(f"schema version {version}, newer than {VERSION}")
        self.version = version


@dataclass(frozen=True, slots=True)
class ServiceRollup:
    """All sessions of the services with one label and role."""

    label: str
    role: str
    sessions: int = 0
    queues: int = 0
    drift: Counts = field(default_factory=dict)
    delivered: int = 0
    alls: Buckets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rollup:
    """`edge` is drawn when an edge starts, and `sequence` counts its records 1, 2, 3 …: together they name a record."""

    router: str
    program: str
    edge: str
    sequence: int
    start: int
    """Milliseconds since the epoch."""
    duration: int
    """Milliseconds."""
    commands: Counts = field(default_factory=dict)
    events: Counts = field(default_factory=dict)
    gauges: Counts = field(default_factory=dict)
    histograms: Mapping[str, Buckets] = field(default_factory=dict)
    services: tuple[ServiceRollup, ...] = ()


def is_name(text: str) -> bool:
    """Whether a router may have this name."""
    return _NAME.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Whether a service may have this label: printable text, without spaces at its ends."""
    return 0 < len(text) <= LONGEST_LABEL and text.isprintable() and text == text.strip() and text != OTHER


def encode(rollup: Rollup) -> bytes:
    """Encode a record. Raises ValueError for a name that is not declared, and for a number that is negative or huge."""
    _check(rollup)
    if len(rollup.services) <= _MOST_SERVICES and len(data := _pack(rollup)) <= MAX_BYTES:
        return data
    for smaller in _smaller(replace(rollup, services=_add_up(rollup.services, _MOST_SERVICES))):
        data = _pack(replace(smaller, services=_add_up(smaller.services, 0)))
        if len(data) <= MAX_BYTES:
            return _most_services(smaller, data)
    raise ValueError(f"the record takes more than {MAX_BYTES} bytes")


def _smaller(rollup: Rollup) -> Iterator[Rollup]:
    """The record with ever less detail."""
    gauges = GAUGES[rollup.program]
    for width, errors, fleet in _DETAILS:
        yield replace(
            rollup,
            commands=_add_up_errors(rollup.commands) if errors else rollup.commands,
            gauges={n: v for n, v in rollup.gauges.items() if not gauges[n].fleet} if fleet else rollup.gauges,
            histograms={name: coarsen(buckets, width) for name, buckets in rollup.histograms.items()},
            services=tuple(replace(service, alls=coarsen(service.alls, width)) for service in rollup.services),
        )


def _most_services(rollup: Rollup, least: bytes) -> bytes:
    """The record with as many services as fit. `least` has none but "other"."""
    low, high = 0, len(rollup.services)
    while low < high:
        tried = (low + high + 1) // 2
        data = _pack(replace(rollup, services=_add_up(rollup.services, tried)))
        if len(data) <= MAX_BYTES:
            low, least = tried, data
        else:
            high = tried - 1
    return least


def _add_up(services: Iterable[ServiceRollup], kept: int) -> tuple[ServiceRollup, ...]:
    """Keep the services with the most queues. Add the rest up, by role."""
    ranked = sorted(services, key=lambda s: (s.label == OTHER, -s.queues, s.label, s.role))
    rest: dict[str, list[ServiceRollup]] = {}
    for service in ranked[kept:]:
        rest.setdefault(service.role, []).append(service)
    return (*ranked[:kept], *map(add_up, rest.values()))


def add_up(services: Sequence[ServiceRollup]) -> ServiceRollup:
    """Services of one role as one, under "other"."""
    return ServiceRollup(
        OTHER,
        services[0].role,
        sum(s.sessions for s in services),
        sum(s.queues for s in services),
        {kind: sum(s.drift.get(kind, 0) for s in services) for kind in DRIFT},
        sum(s.delivered for s in services),
        merge(s.alls for s in services),
    )


def _add_up_errors(commands: Counts) -> dict[str, int]:
    added: dict[str, int] = {}
    for key, count in commands.items():
        command, _, outcome = key.partition(".")
        short = key if outcome == "OK" else f"{command}.OTHER"
        added[short] = added.get(short, 0) + count
    return added


def _pack(rollup: Rollup) -> bytes:
    content: dict[str, Any] = {"version": VERSION}
    content |= {name: getattr(rollup, name) for name in _COMMON[1:]}
    for name in _TABLES[:-1]:
        content[name] = _non_zero(getattr(rollup, name))
    content["histograms"] = {name: runs for name, each in rollup.histograms.items() if (runs := _runs(each))}
    content["services"] = [
        {
            name: value
            for name, value in (
                ("label", service.label),
                ("role", service.role),
                ("sessions", service.sessions),
                ("queues", service.queues),
                ("drift", _non_zero(service.drift)),
                ("delivered", service.delivered),
                ("alls", _runs(service.alls)),
            )
            if value
        }
        for service in rollup.services
    ]
    text = json.dumps(
        {k: v for k, v in content.items() if v or k in _COMMON},
        ensure_ascii=False,
        separators=(",", ":"),
        sort_keys=True,
    )
    packer = zlib.compressobj(9, zlib.DEFLATED, _GZIP)
    return packer.compress(text.encode()) + packer.flush()


def _non_zero(counts: Counts) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _runs(buckets: Buckets) -> list[int]:
    filled = sorted(index for index, count in buckets.items() if count)
    if not filled:
        return []
    return [filled[0], *(buckets.get(index, 0) for index in range(filled[0], filled[-1] + 1))]


def decode(data: bytes) -> Rollup:
    """Decode a record. Raises Unreadable or Newer."""
    content = _object(_unpack(data), "the record")
    version = content.pop("version", None)
    if type(version) is not int or version < 1:
        raise Unreadable("no schema version")
    if version > VERSION:
        raise Newer(version)
    missing = [name for name in _COMMON[1:] if name not in content]
    if missing:
        raise Unreadable(f"no {missing[0]}")
    if set(content) - {*_COMMON, *_TABLES, "services"}:
        raise Unreadable("a field that is not declared")
    for name in _TABLES:
        content[name] = _object(content.get(name, {}), name)
    content["histograms"] = {name: _buckets(runs) for name, runs in content["histograms"].items()}
    services = content.get("services", [])
    if not isinstance(services, list):
        raise Unreadable("services is no list")
    content["services"] = tuple(_service(_object(service, "a service")) for service in services)
    rollup = Rollup(**content)
    try:
        _check(rollup)
    except ValueError as error:
        raise Unreadable(str(error)) from None
    return rollup


def _unpack(data: bytes) -> Any:
    unpacker = zlib.decompressobj(_GZIP)
    try:
        text = unpacker.decompress(data, _LONGEST_TEXT)
    except zlib.error:
        raise Unreadable("not gzip") from None
    if not unpacker.eof or unpacker.unused_data:
        raise Unreadable("gzip that is cut, or too long")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("not JSON") from None


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is no object")
    return value


def _buckets(runs: Any) -> dict[int, int]:
    if not isinstance(runs, list) or len(runs) < 2 or type(runs[0]) is not int:
        raise Unreadable("a histogram is no list of counts")
    return {runs[0] + n: count for n, count in enumerate(runs[1:]) if count != 0}


def _service(content: dict[str, Any]) -> ServiceRollup:
    if set(content) - {"label", "role", "sessions", "queues", "drift", "delivered", "alls"}:
        raise Unreadable("a service has a field that is not declared")
    if not {"label", "role"} <= set(content):
        raise Unreadable("a service has no label or no role")
    content["drift"] = _object(content.get("drift", {}), "drift")
    content["alls"] = _buckets(content["alls"]) if "alls" in content else {}
    return ServiceRollup(**content)


def _check(rollup: Rollup) -> None:
    """Raise ValueError unless every name is declared and every number can be. The text repeats nothing of a record."""
    program = rollup.program
    if program not in PROGRAMS:
        raise ValueError("no such program")
    for pattern, value, name in ((_NAME, rollup.router, "router"), (_EDGE, rollup.edge, "edge")):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{name} is no name")
    _check_number(rollup.sequence, "sequence", least=1)
    _check_number(rollup.start, "start")
    _check_number(rollup.duration, "duration")
    _check_counts(rollup.commands, _COMMAND_KEYS[program], "commands")
    _check_counts(rollup.events, EVENTS[program], "events")
    _check_counts(rollup.gauges, GAUGES[program], "gauges")
    if not rollup.histograms.keys() <= HISTOGRAMS[program].keys():
        raise ValueError("histograms has a name that is not declared")
    for buckets in rollup.histograms.values():
        _check_buckets(buckets)
    for service in rollup.services:
        label = service.label
        if not isinstance(label, str) or not (label == OTHER or is_label(label)) or service.role not in ROLES:
            raise ValueError("a service has no usable label or role")
        _check_number(service.sessions, "sessions")
        _check_number(service.queues, "queues")
        _check_number(service.delivered, "delivered")
        _check_counts(service.drift, DRIFT, "drift")
        _check_buckets(service.alls)


def _check_number(value: object, name: str, least: int = 0) -> None:
    if type(value) is not int or not least <= value <= LARGEST:
        raise ValueError(f"{name} is no number from {least} to 2^53")


def _check_counts(counts: Counts, names: Iterable[str], what: str) -> None:
    if not counts.keys() <= set(names):
        raise ValueError(f"{what} has a name that is not declared")
    for count in counts.values():
        _check_number(count, f"a number of {what}")


def _check_buckets(buckets: Buckets) -> None:
    if buckets and not (min(buckets) >= -1 and max(buckets) <= LAST):
        raise ValueError("a histogram has a bucket that is not there")
    for count in buckets.values():
        _check_number(count, "a count of a histogram")


_COMMAND_KEYS: Final = {
    program: frozenset(f"{command}.{outcome}" for command in commands for outcome in OUTCOMES)
    for program, commands in COMMANDS.items()
}
