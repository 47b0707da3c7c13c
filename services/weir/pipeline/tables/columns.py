"""The declaration of the silver and gold tables: their columns, types, keys and descriptions.

The declaration makes the tables, their comments, `weir pipeline tables --describe` and docs/pipeline.md. Readers of the
tables take names from here. No part of Spark is imported.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from weir.pipeline.tables.declaration import (
    BUCKETS,
    COUNTS,
    DATE,
    DOUBLE,
    LONG,
    MIN_QUEUES,
    MIN_SAMPLES,
    STRING,
    TIMESTAMP,
    Column,
    How,
    Table,
)
from weir.telemetry.daily import NTF, SMP, DailyColumn
from weir.telemetry.rollups.fields import EVENTS, GAUGES, HISTOGRAMS, Field

_ROUTER: Final = (
    Column("router", STRING, "name of the router, as its operator has set it"),
    Column("program", STRING, "smp or ntf"),
)
_DAY: Final = Column("day", DATE, "day of the row in UTC; tables are partitioned by it")
_TIMES: Final = (
    Column("grain", STRING, "length of time of the row: minute, hour or day"),
    Column("at", TIMESTAMP, "start of that time, in UTC"),
    _DAY,
)
_HEAD: Final = (*_ROUTER, *_TIMES)
_KEY: Final = ("router", "program", "grain", "at")


def _all(of: Mapping[str, Mapping[str, Field]]) -> dict[str, Field]:
    """The names of both programs."""
    return {name: field for program in ("smp", "ntf") for name, field in of[program].items()}


def _text(field: Field) -> str:
    return f"{field.text}, in {field.unit}" if field.unit in ("µs", "bytes") else field.text


# Counts that have a column of their own in silver, and the event they count. The map `events` has all others as well.
_COUNTED: Final = {
    "messages_sent": "msgSent",
    "messages_received": "msgRecv",
    "messages_fetched": "msgRecvGet",
    "messages_expired": "msgExpired",
    "messages_over_quota": "msgSentQuota",
    "messages_forwarded_in": "pMsgFwdsRecv",
    "messages_forwarded_out": "pMsgFwds_pRequests",
    "messages_flagged": "msgSentNtf",
    "queues_created": "qCreated",
    "queues_secured": "qSecured",
    "queues_deleted": "qDeletedAll",
    "notifications_sent": "msgNtfs",
    "notifications_without_subscriber": "msgNtfNoSub",
    "notifications_lost": "msgNtfLost",
    "notifications_expired": "msgNtfExpired",
    "notifications_received": "ntfReceived",
    "notifications_refused": "ntfReceivedAuth",
    "pushes_delivered": "ntfDelivered",
    "pushes_failed": "ntfFailed",
    "periodic_delivered": "ntfCronDelivered",
    "periodic_failed": "ntfCronFailed",
    "tokens_created": "tknCreated",
    "tokens_deleted": "tknDeleted",
    "subscriptions_created": "subCreated",
    "subscriptions_deleted": "subDeleted",
}
EVENT_COLUMNS: Final[Mapping[str, str]] = _COUNTED
GAUGE_COLUMNS: Final[Mapping[str, Field]] = _all(GAUGES)
HISTOGRAM_COLUMNS: Final[Mapping[str, Field]] = _all(HISTOGRAMS)
_EVENTS: Final = _all(EVENTS)

EDGE_MINUTES: Final = Table(
    "silver/edge_minutes",
    "What each edge reported. A record counts in the minute in which its interval starts, whole, however long it is.",
    "an edge and a minute",
    ("router", "program", "edge", "at"),
    (
        *_ROUTER,
        Column("edge", STRING, "random name of the edge, another one after each start"),
        Column("at", TIMESTAMP, "the minute in which the intervals start, in UTC"),
        _DAY,
        Column("records", LONG, "records added up in this row: usually one"),
        Column("first_sequence", LONG, "number of the first of these records"),
        Column("last_sequence", LONG, "number of the last one; gauges are this record's"),
        Column("observed_ms", LONG, "length of the records' intervals, in ms"),
        Column("commands_total", LONG, "commands answered"),
        Column("errors_total", LONG, "commands answered with an error"),
        *(Column(name, LONG, _EVENTS[event].text) for name, event in _COUNTED.items()),
        *(Column(name, LONG, _text(field)) for name, field in GAUGE_COLUMNS.items()),
        *(Column(name, BUCKETS, f"histogram: {_text(field)}") for name, field in HISTOGRAM_COLUMNS.items()),
        Column("commands", COUNTS, "commands by COMMAND.OUTCOME"),
        Column("events", COUNTS, "all counters of the router, by name"),
    ),
)

EDGE_DAYS: Final = Table(
    "silver/edge_days",
    "Which records of each edge there are, to find the missing ones.",
    "an edge and a day",
    ("router", "program", "edge", "day"),
    (
        *_ROUTER,
        Column("edge", STRING, "random name of the edge"),
        _DAY,
        Column("first_sequence", LONG, "number of the day's first record"),
        Column("last_sequence", LONG, "number of the day's last record"),
        Column("first_start", TIMESTAMP, "start of the first record"),
        Column("first_ms", LONG, "length of its interval, in ms"),
        Column("last_end", TIMESTAMP, "end of the last record"),
        Column(
            "holes",
            "array<struct<first:bigint,last:bigint,start:timestamp,end:timestamp>>",
            "numbers that are missing between two records of the day, and the time between the two",
        ),
    ),
)


def _same(how: How, *names: str) -> tuple[Column, ...]:
    """Columns of gold that have the name of silver's."""
    texts = {column.name: column.text for column in EDGE_MINUTES.columns}
    return tuple(Column(name, DOUBLE if how == "level" else LONG, texts[name], how, name) for name in names)


def _level_and_peak(*names: str) -> tuple[Column, ...]:
    texts = {column.name: column.text for column in EDGE_MINUTES.columns}
    return tuple(
        column
        for name in names
        for column in (
            Column(name, DOUBLE, f"{texts[name]}; mean over the minutes", "level", name),
            Column(f"{name}_max", LONG, f"{texts[name]}; the highest minute", "peak", name),
        )
    )


TRAFFIC: Final = Table(
    "gold/traffic",
    "How much a router did. Numbers are null in a time from which no record has come: a gap is no zero.",
    "a router and a minute, an hour or a day",
    _KEY,
    (
        *_HEAD,
        Column("seconds_observed", DOUBLE, "seconds that records tell of, added up over edges"),
        Column("seconds_missing", DOUBLE, "seconds of missing records (gold/gaps), added up over edges"),
        Column("edges", LONG, "edges that reported, in the minute with the most", "peak", "reported"),
        *_same("sum", "commands_total", "errors_total"),
        *_same("sum", "messages_sent", "messages_received", "messages_fetched", "messages_expired"),
        *_same("sum", "messages_over_quota", "messages_forwarded_in", "messages_forwarded_out"),
        *_same("sum", "queues_created", "queues_secured", "queues_deleted"),
        *_same("sum", "tokens_created", "tokens_deleted", "subscriptions_created", "subscriptions_deleted"),
        *_level_and_peak("connections", "subscriptions", "service_queues", "ntf_subscriptions", "ntf_service_queues"),
        *_level_and_peak("service_subscriptions"),
    ),
)

COMMANDS: Final = Table(
    "gold/commands",
    "Commands by their outcome.",
    "a router, a time, a command and an outcome",
    (*_KEY, "command", "outcome"),
    (
        *_HEAD,
        Column("command", STRING, "the protocol's name of the command; unreadable: refused before the command begins"),
        Column("outcome", STRING, "OK, or the error's name"),
        Column("count", LONG, "commands answered so"),
    ),
)

LATENCY: Final = Table(
    "gold/latency",
    f"Times and sizes as histograms, and their quantiles: within 4.5 %, and null below {MIN_SAMPLES} values.",
    "a router, a time and a histogram",
    (*_KEY, "histogram"),
    (
        *_HEAD,
        Column("histogram", STRING, "the histogram's name: " + ", ".join(HISTOGRAM_COLUMNS)),
        Column("unit", STRING, "unit of the values: µs, or messages"),
        Column("count", LONG, "values"),
        Column("p50", DOUBLE, "the value that half of all values do not exceed"),
        Column("p90", DOUBLE, "the same for 90 %"),
        Column("p99", DOUBLE, "the same for 99 %"),
        Column("p999", DOUBLE, "the same for 99.9 %"),
        Column("max", DOUBLE, "the highest value"),
        Column("buckets", BUCKETS, "values by bucket: bucket i begins at 2^(i/8), bucket -1 has the values below 1"),
    ),
)

SERVICES: Final = Table(
    "gold/services",
    f"Services by their operator's label. An hour in which a service has fewer than {MIN_QUEUES} queues has no row. A "
    "day adds up its hours that have one.",
    "a router, an hour or a day, a label and a role",
    (*_KEY, "label", "role"),
    (
        *_HEAD,
        Column("label", STRING, "the operator's label of the service; other: services without one, added up"),
        Column("role", STRING, "messages or notifications"),
        Column("queues", LONG, "queues of the service, the highest number"),
        Column("sessions", LONG, "sessions that own the service, the highest number"),
        *(
            Column(f"drift_{kind}", LONG, f"SUBS: {text}")
            for kind, text in (
                ("ok", "the client expected what is stored"),
                ("more", "more queues are stored than the client expected"),
                ("fewer", "fewer queues are stored than the client expected"),
                ("diff", "as many queues are stored, but others"),
            )
        ),
        Column("delivered", LONG, "messages or notifications delivered"),
        Column("alls", LONG, "folds that ended with ALLS"),
        Column("alls_p50", DOUBLE, f"µs from SUBS to ALLS: half are no longer; null below {MIN_SAMPLES} folds"),
        Column("alls_p90", DOUBLE, "the same for 90 %"),
        Column("alls_p99", DOUBLE, "the same for 99 %"),
    ),
)

ACTIVE_QUEUES: Final = Table(
    "gold/active_queues",
    "How many are really in use, by the calendar's day, week (from Monday) and month. Estimates, with an error of "
    "about 1 %. Each day has a row for the week and the month so far: take the maximum of a period, never the sum.",
    "a router, a day, a period and what is counted",
    ("router", "program", "what", "period", "day"),
    (
        *_ROUTER,
        Column("what", STRING, "queues, notifiers (queues with notifications), tokens or subscriptions"),
        Column("period", STRING, "day, week or month"),
        Column("at", TIMESTAMP, "start of the period, in UTC"),
        _DAY,
        Column("active", LONG, "how many were in use from the start of the period through this day"),
    ),
)

CAPACITY: Final = Table(
    "gold/capacity",
    "What fills up: Redis, edges' CPU and memory.",
    "a router and a minute, an hour or a day",
    _KEY,
    (
        *_HEAD,
        Column("edges", LONG, "edges that reported, in the minute with the most", "peak", "reported"),
        *_same("most", "redis_used_bytes", "redis_max_bytes", "redis_keys"),
        Column("queues", LONG, "queues stored, at the end", "last", "fleet_queues"),
        Column("messages", LONG, "messages stored, at the most", "most", "fleet_messages"),
        Column("notifiers", LONG, "notifiers stored, at the end", "last", "fleet_notifiers"),
        Column("tokens", LONG, "tokens stored, at the end", "last", "fleet_tokens"),
        Column("token_subscriptions", LONG, "tokens' subscriptions stored, at the end", "last", "fleet_subscriptions"),
        Column("cpu_share", DOUBLE, "CPU time over time, mean over edges and minutes: 1 is a whole core"),
        Column("cpu_share_max", DOUBLE, "the same for the edge and minute with the most"),
        *_level_and_peak("rss_bytes"),
        Column("edge_rss_bytes_max", LONG, "memory of the largest edge, in bytes", "worst", "rss_bytes"),
        Column("edge_connections_max", LONG, "clients of the edge with the most", "worst", "connections"),
        *_same("worst", "loop_delay_max_us"),
        *_level_and_peak("deferred", "outgoing_bytes"),
        Column(
            "pushes_waiting", LONG, "pushes that are due and wait in Redis, at the most", "most", "ntf_queue_waiting"
        ),
        Column(
            "smp_servers_owned", LONG, "SMP routers that are subscribed to, at the most", "peak", "smp_servers_owned"
        ),
        Column("smp_servers_active", LONG, "those subscribed to in full, at the most", "peak", "smp_servers_active"),
    ),
)

NOTIFICATIONS: Final = Table(
    "gold/notifications",
    "The way of notifications: from messages with the notification flag to pushes that a provider accepted.",
    "a router and a minute, an hour or a day",
    _KEY,
    (
        *_HEAD,
        *_same("sum", "messages_flagged", "notifications_sent", "notifications_without_subscriber"),
        *_same("sum", "notifications_lost", "notifications_expired"),
        *_same("sum", "notifications_received", "notifications_refused"),
        Column("notifications_kept", LONG, "received, and kept for an active token: received less refused"),
        *_same("sum", "pushes_delivered", "pushes_failed", "periodic_delivered", "periodic_failed"),
        Column("pushes", COUNTS, "pushes by provider and answer: apns_prod_delivered, web_push_retry …"),
        Column("limited", COUNTS, "pushes refused because of their rate, by provider"),
    ),
)

GAPS: Final = Table(
    "gold/gaps",
    "Records that are missing between two records of an edge, or before its first. Nothing is known of that time.",
    "an edge and a row of missing records",
    ("router", "program", "edge", "first_missing"),
    (
        *_ROUTER,
        Column("edge", STRING, "random name of the edge"),
        _DAY,
        Column("first_missing", LONG, "number of the first missing record"),
        Column("last_missing", LONG, "number of the last missing record"),
        Column("start", TIMESTAMP, "end of the record before the gap, in UTC; before the first record an estimate"),
        Column("end", TIMESTAMP, "start of the record after the gap, in UTC"),
        Column("reason", STRING, "trimmed: the stream had dropped them before they were read; missing: never seen"),
    ),
)

CRITICAL_PATH: Final = Table(
    "gold/critical_path",
    "Where the time between SUBS and ALLS goes, in traced SUBS. A moment counts for one step.",
    "a program, an hour or a day, and a step",
    ("service", "grain", "at", "step"),
    (
        Column("service", STRING, "service.name of the traces' resource"),
        *_TIMES,
        Column(
            "step",
            STRING,
            "takeover; fold.page: asking Redis for messages; client: until the client has read them; other",
        ),
        Column("traces", LONG, "traces of SUBS"),
        Column("total_us", LONG, "µs spent in this step, in all of them"),
        Column("share", DOUBLE, "share of the time from SUBS to ALLS"),
        Column("longest_us", LONG, "µs spent in this step in the trace with the most"),
    ),
)


def _daily(name: str, program: str, columns: Iterable[DailyColumn]) -> Table:
    return Table(
        name,
        f"The daily statistics of the reference {program} server, column for column, for dashboards made for them. "
        "Numbers of a week are there on Sundays only, those of a month on its last day only.",
        "a router and a day",
        ("router", "day"),
        (
            Column("router", STRING, "name of the router"),
            _DAY,
            *(Column(column.name, LONG, column.text) for column in columns),
        ),
    )


DAILY_SMP: Final = _daily("gold/daily_smp", "SMP", SMP)
DAILY_NTF: Final = _daily("gold/daily_ntf", "NTF", NTF)

SILVER: Final = (EDGE_MINUTES, EDGE_DAYS)
GOLD: Final = (
    TRAFFIC,
    COMMANDS,
    LATENCY,
    SERVICES,
    ACTIVE_QUEUES,
    CAPACITY,
    NOTIFICATIONS,
    GAPS,
    CRITICAL_PATH,
    DAILY_SMP,
    DAILY_NTF,
)
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in (*SILVER, *GOLD)}
