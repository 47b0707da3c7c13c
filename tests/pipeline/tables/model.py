"""The tables, computed from records in plain Python: what Spark's tables are compared with, and rows for other tests.

The model follows the declaration (weir.pipeline.tables.columns) and shares no code with the jobs, except for quantiles.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

from weir.pipeline.tables import columns
from weir.pipeline.tables.declaration import MIN_QUEUES, MIN_SAMPLES, Table
from weir.telemetry.daily import NTF, SMP
from weir.telemetry.rollups.fields import GAUGES
from weir.telemetry.rollups.histogram import merge, quantile
from weir.telemetry.rollups.record import Rollup

Row = dict[str, Any]
Rows = dict[str, list[Row]]
_MINUTE = 60_000
_FLEET = {name for program in GAUGES.values() for name, field in program.items() if field.fleet}


def tables(records: Iterable[Rollup], trimmed: Iterable[tuple[str, int, int]] = (), spans: Iterable[Row] = ()) -> Rows:
    """All silver and gold tables. `trimmed`: edge, first and last number that the stream had dropped unread."""
    once = {(r.router, r.program, r.edge, r.sequence): r for r in records}
    ordered = [once[key] for key in sorted(once)]
    silver = edge_minutes(ordered)
    days, gaps = edge_days(ordered, list(trimmed))
    rows: Rows = {"silver/edge_minutes": silver, "silver/edge_days": days, "gold/gaps": gaps}
    rows["gold/traffic"] = traffic(silver, gaps)
    rows["gold/capacity"] = capacity(silver)
    rows["gold/notifications"] = notifications(silver)
    rows["gold/commands"] = commands(silver)
    rows["gold/latency"] = latency(silver)
    rows["gold/services"] = services(ordered)
    rows["gold/active_queues"] = active_queues(silver)
    rows["gold/daily_smp"] = daily(silver, "smp")
    rows["gold/daily_ntf"] = daily(silver, "ntf")
    rows["gold/critical_path"] = critical_path(spans)
    return {name: sort(columns.TABLES[name], rows[name]) for name in columns.TABLES}


def sort(table: Table, rows: Iterable[Row]) -> list[Row]:
    """Rows by their key, with their columns in the declared order."""
    return sorted(
        ({name: row[name] for name in table.names} for row in rows), key=lambda row: tuple(row[k] for k in table.key)
    )


def utc(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def floor(at: datetime, grain: str) -> datetime:
    if grain == "minute":
        return at.replace(second=0, microsecond=0)
    return at.replace(minute=0, second=0, microsecond=0, **({"hour": 0} if grain == "day" else {}))


def add(maps: Iterable[Mapping[Any, int]]) -> dict[Any, int]:
    total: Counter[Any] = Counter()
    for each in maps:
        total.update(each)
    return {name: count for name, count in total.items() if count}


def edge_minutes(records: list[Rollup]) -> list[Row]:
    groups = defaultdict(list)
    for r in records:
        groups[r.router, r.program, r.edge, r.start // _MINUTE].append(r)
    rows = []
    for (router, program, edge, minute), group in groups.items():
        group.sort(key=lambda r: r.sequence)
        last = group[-1].gauges
        counted, events = add(r.commands for r in group), add(r.events for r in group)
        row: Row = {"router": router, "program": program, "edge": edge, "at": utc(minute * _MINUTE)}
        row |= {"day": row["at"].date(), "records": len(group), "observed_ms": sum(r.duration for r in group)}
        row |= {"first_sequence": group[0].sequence, "last_sequence": group[-1].sequence}
        row["commands_total"] = sum(counted.values())
        row["errors_total"] = sum(n for name, n in counted.items() if not name.endswith(".OK"))
        row |= {name: events.get(event, 0) for name, event in columns.EVENT_COLUMNS.items()}
        row |= {name: last.get(name, None if name in _FLEET else 0) for name in columns.GAUGE_COLUMNS}
        row["cpu_us"] = sum(r.gauges.get("cpu_us", 0) for r in group)
        row["loop_delay_max_us"] = max(r.gauges.get("loop_delay_max_us", 0) for r in group)
        for name in columns.HISTOGRAM_COLUMNS:
            row[name] = merge(r.histograms.get(name, {}) for r in group) or None
        rows.append(row | {"commands": counted, "events": events})
    return rows


def edge_days(records: list[Rollup], trimmed: list[tuple[str, int, int]]) -> tuple[list[Row], list[Row]]:
    edges = defaultdict(list)
    for r in records:
        edges[r.router, r.program, r.edge].append(r)
    days, gaps = [], []
    for (router, program, edge), own in edges.items():
        own.sort(key=lambda r: r.sequence)
        by_day = defaultdict(list)
        for r in own:
            by_day[utc(r.start).date()].append(r)
        head = {"router": router, "program": program, "edge": edge}
        for day, some in by_day.items():
            row = head | {"day": day, "first_sequence": some[0].sequence, "last_sequence": some[-1].sequence}
            row |= {"first_start": utc(some[0].start), "last_end": utc(some[-1].start + some[-1].duration)}
            row["first_ms"] = some[0].duration
            days.append(row | {"holes": list(_holes(some))})
        for hole in (*_beginning(own[0], trimmed), *_holes(own)):
            first, last = hole["first"], hole["last"]
            dropped = any(e == edge and low <= last and first <= high for e, low, high in trimmed)
            row = head | {"day": hole["end"].date(), "first_missing": first, "last_missing": last}
            gaps.append(
                row | {"start": hole["start"], "end": hole["end"], "reason": "trimmed" if dropped else "missing"}
            )
    return days, gaps


def _holes(records: list[Rollup]) -> Iterable[Row]:
    for one, other in pairwise(records):
        if other.sequence > one.sequence + 1:
            end = utc(one.start + one.duration)
            yield {"first": one.sequence + 1, "last": other.sequence - 1, "start": end, "end": utc(other.start)}


def _beginning(first: Rollup, trimmed: list[tuple[str, int, int]]) -> Iterable[Row]:
    if first.sequence > 1 and any(edge == first.edge and low == 1 for edge, low, _ in trimmed):
        start = utc(first.start - (first.sequence - 1) * first.duration)
        yield {"first": 1, "last": first.sequence - 1, "start": start, "end": utc(first.start)}


def _times(row: Row) -> Iterable[tuple[str, datetime]]:
    for grain in ("minute", "hour", "day"):
        yield grain, floor(row["at"], grain)


def _grouped(silver: Iterable[Row]) -> dict[tuple[str, str, str, datetime], list[Row]]:
    groups = defaultdict(list)
    for row in silver:
        for grain, at in _times(row):
            groups[row["router"], row["program"], grain, at].append(row)
    return groups


def _head(key: tuple[str, str, str, datetime]) -> Row:
    return dict(zip(("router", "program", "grain", "at"), key, strict=True)) | {"day": key[3].date()}


def _numbers(table: Table, rows: list[Row]) -> Row:
    """The columns that are declared with a way to make them."""
    minutes = defaultdict(list)
    for row in rows:
        minutes[row["at"]].append(row | {"reported": 1})
    found: Row = {}
    for column in table.columns:
        if not column.how:
            continue
        over_edges = max if column.how in ("worst", "last", "most") else sum
        values = []
        for at in sorted(minutes):
            present = [row[column.of] for row in minutes[at] if row[column.of] is not None]
            if present:
                values.append(over_edges(present))
        if not values:
            found[column.name] = None
        elif column.how == "sum":
            found[column.name] = sum(values)
        elif column.how == "level":
            found[column.name] = sum(values) / len(values)
        else:
            found[column.name] = values[-1] if column.how == "last" else max(values)
    return found


def traffic(silver: list[Row], gaps: list[Row]) -> list[Row]:
    missing: Counter[tuple[str, str, str, datetime]] = Counter()
    for gap in gaps:
        at = floor(gap["start"], "minute")
        while at < gap["end"]:
            seconds = (min(gap["end"], at + timedelta(minutes=1)) - max(gap["start"], at)) / timedelta(milliseconds=1)
            for grain, start in _times({"at": at}):
                missing[gap["router"], gap["program"], grain, start] += round(seconds)
            at += timedelta(minutes=1)
    groups = _grouped(silver)
    rows = []
    for key in groups.keys() | missing.keys():
        own = groups.get(key, [])
        row = _head(key) | _numbers(columns.TRAFFIC, own)
        row["seconds_observed"] = sum(r["observed_ms"] for r in own) / 1000
        row["seconds_missing"] = missing[key] / 1000
        rows.append(row)
    return rows


def capacity(silver: list[Row]) -> list[Row]:
    rows = []
    for key, own in _grouped(silver).items():
        row = _head(key) | _numbers(columns.CAPACITY, own)
        spent = sum(r["observed_ms"] for r in own)
        row["cpu_share"] = sum(r["cpu_us"] for r in own) / spent / 1000 if spent else None
        row["cpu_share_max"] = max(
            (r["cpu_us"] / r["observed_ms"] / 1000 for r in own if r["observed_ms"]), default=None
        )
        rows.append(row)
    return rows


def notifications(silver: list[Row]) -> list[Row]:
    rows = []
    for key, own in _grouped(silver).items():
        row = _head(key) | _numbers(columns.NOTIFICATIONS, own)
        row["notifications_kept"] = row["notifications_received"] - row["notifications_refused"]
        events = add(r["events"] for r in own)
        for name, prefix in (("pushes", "pushes_"), ("limited", "pushLimited_")):
            row[name] = {event[len(prefix) :]: n for event, n in events.items() if event.startswith(prefix)} or None
        rows.append(row)
    return rows


def commands(silver: list[Row]) -> list[Row]:
    rows = []
    for key, own in _grouped(silver).items():
        for name, count in add(r["commands"] for r in own).items():
            command, _, outcome = name.partition(".")
            rows.append(_head(key) | {"command": command, "outcome": outcome, "count": count})
    return rows


def quantiles(buckets: Mapping[int, int], of: Mapping[str, float], prefix: str = "") -> Row:
    enough = sum(buckets.values()) >= MIN_SAMPLES
    return {prefix + name: quantile(buckets, q) if enough else None for name, q in of.items()}


def latency(silver: list[Row]) -> list[Row]:
    rows = []
    for key, own in _grouped(silver).items():
        for name, field in columns.HISTOGRAM_COLUMNS.items():
            buckets = merge(r[name] or {} for r in own)
            if buckets:
                row = _head(key) | {"histogram": name, "unit": field.unit, "count": sum(buckets.values())}
                row |= quantiles(buckets, {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0})
                rows.append(row | {"buckets": buckets})
    return rows


def services(records: list[Rollup]) -> list[Row]:
    hours = defaultdict(list)
    for r in records:
        for each in r.services:
            at = floor(utc(r.start), "hour")
            hours[r.router, r.program, each.label, each.role, at].append((r, each))
    grouped = defaultdict(list)
    for (router, program, label, role, at), own in hours.items():
        if max(each.queues for _, each in own) >= MIN_QUEUES:
            for grain in ("hour", "day"):
                grouped[(router, program, grain, floor(at, grain)), label, role].extend(own)
    rows = []
    for (key, label, role), own in grouped.items():
        sessions: Counter[int] = Counter()
        for r, each in own:
            sessions[r.start // _MINUTE, r.edge] = max(sessions[r.start // _MINUTE, r.edge], each.sessions)
        by_minute: Counter[int] = Counter()
        for (minute, _), count in sessions.items():
            by_minute[minute] += count
        alls = merge(each.alls for _, each in own)
        drift = add(each.drift for _, each in own)
        row = _head(key) | {"label": label, "role": role, "queues": max(each.queues for _, each in own)}
        row |= {f"drift_{kind}": drift.get(kind, 0) for kind in ("ok", "more", "fewer", "diff")}
        row |= {"sessions": max(by_minute.values()), "delivered": sum(each.delivered for _, each in own)}
        row |= {"alls": sum(alls.values())}
        rows.append(row | quantiles(alls, {"p50": 0.5, "p90": 0.9, "p99": 0.99}, "alls_"))
    return rows


_WHAT = {"queues": "fleet_active_queues", "notifiers": "fleet_active_ntf"}
_WHAT |= {"tokens": "fleet_active_tokens", "subscriptions": "fleet_active_subscriptions"}


def active_queues(silver: list[Row]) -> list[Row]:
    rows = []
    for (router, program, grain, at), own in _grouped(silver).items():
        for what, gauge in _WHAT.items() if grain == "day" else ():
            for period in ("day", "week", "month"):
                values = [r[f"{gauge}_{period}"] for r in own if r[f"{gauge}_{period}"] is not None]
                start = at - timedelta(days={"day": 0, "week": at.weekday(), "month": at.day - 1}[period])
                row = {"router": router, "program": program, "what": what, "period": period, "day": at.date()}
                if values:
                    rows.append(row | {"at": start, "active": max(values)})
    return rows


def daily(silver: list[Row], program: str) -> list[Row]:
    rows = []
    for (router, own_program, grain, at), own in _grouped(silver).items():
        if grain != "day" or own_program != program:
            continue
        row: Row = {"router": router, "day": at.date()}
        events = add(r["events"] for r in own)
        tomorrow: date = at.date() + timedelta(days=1)
        for column in SMP if program == "smp" else NTF:
            value: int | None = 0
            if column.how == "sum":
                value = events.get(column.of, 0)
            elif column.how == "last":
                by_minute = {}
                for r in own:
                    if r[f"fleet_{column.of}"] is not None:
                        by_minute[r["at"]] = max(by_minute.get(r["at"], 0), r[f"fleet_{column.of}"])
                value = by_minute[max(by_minute)] if by_minute else 0
            elif column.how == "active":
                what, _, period = column.of.rpartition("_")
                value = max((r[f"{_WHAT[what]}_{period}"] or 0 for r in own), default=0)
                if (period == "week" and tomorrow.weekday() != 0) or (period == "month" and tomorrow.day != 1):
                    value = None
            row[column.name] = value
        rows.append(row)
    return rows


def critical_path(spans: Iterable[Row]) -> list[Row]:
    traces = defaultdict(list)
    for span in {(s["trace_id"], s["span_id"]): s for s in spans}.values():
        traces[span["trace_id"]].append(span)
    taken = defaultdict(list)
    for own in traces.values():
        root = [s for s in own if s["name"] == "SUBS"]
        alls = [s for s in own if s["name"] == "ALLS"]
        if len(root) != 1 or len(alls) != 1:
            continue
        total = root[0]["duration_us"]
        steps = {n: sum(s["duration_us"] for s in own if s["name"] == n) for n in ("takeover", "fold.page")}
        pages = [s["start"] for s in own if s["name"] == "fold.page"]
        folded = (alls[0]["start"] - min(pages)) // timedelta(microseconds=1) if pages else 0
        steps["client"] = max(0, folded - steps["fold.page"])
        steps["other"] = max(0, total - sum(steps.values()))
        for grain in ("hour", "day"):
            taken[root[0]["service"], grain, floor(root[0]["start"], grain)].append(steps)
    rows = []
    for (service, grain, at), each in taken.items():
        whole = sum(sum(steps.values()) for steps in each)
        for step in ("takeover", "fold.page", "client", "other"):
            spent = [steps[step] for steps in each]
            row = {"service": service, "grain": grain, "at": at, "day": at.date(), "step": step, "traces": len(each)}
            row |= {"total_us": sum(spent), "share": sum(spent) / whole if whole else 0.0, "longest_us": max(spent)}
            rows.append(row)
    return rows
