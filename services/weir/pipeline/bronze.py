"""The declaration of the bronze tables: what was read, as it was read. No part of Spark is imported."""

from collections.abc import Mapping
from typing import Final

from weir.pipeline.tables.declaration import BUCKETS, COUNTS, DATE, LONG, STRING, TIMESTAMP, Column, Table

_INT: Final = "int"
_BINARY: Final = "binary"
_HISTOGRAMS: Final = f"map<string,{BUCKETS}>"
_SERVICES: Final = (
    "array<struct<label:string,role:string,sessions:bigint,queues:bigint,"
    f"drift:{COUNTS},delivered:bigint,alls:{BUCKETS}>>"
)
_STREAM: Final = (
    Column("stream", STRING, "the Redis stream: its address, without credentials, and the prefix of its keys"),
    Column("stream_id", STRING, "id of the entry in the stream"),
)
_EDGE: Final = (
    Column("router", STRING, "name of the router, as its operator has set it"),
    Column("program", STRING, "smp or ntf"),
    Column("edge", STRING, "one start of one edge: a random name"),
)
_DAY: Final = Column("day", DATE, "day in UTC; the table is partitioned by it")
_INGESTED: Final = Column("ingested_at", TIMESTAMP, "when the row was written")

ROLLUPS: Final = Table(
    "bronze/rollups",
    "The records of the edges, each once, as they were published.",
    "a record",
    ("edge", "sequence"),
    (
        *_STREAM,
        *_EDGE,
        Column("sequence", LONG, "the edge's records are numbered 1, 2, 3 …"),
        Column("start", TIMESTAMP, "start of the interval"),
        Column("duration_ms", _INT, "length of the interval in milliseconds"),
        Column("version", _INT, "version of the record's schema"),
        Column("commands", COUNTS, "commands by COMMAND.OUTCOME"),
        Column("events", COUNTS, "the router's counters"),
        Column("gauges", COUNTS, "levels at the end of the interval"),
        Column("histograms", _HISTOGRAMS, "values counted in logarithmic buckets, by name and bucket"),
        Column("services", _SERVICES, "services by the operator's own labels"),
        _DAY,
        _INGESTED,
    ),
)
QUARANTINE: Final = Table(
    "bronze/quarantine",
    "Entries and lines that cannot be read.",
    "an entry of a stream, or a line of a file",
    ("stream", "stream_id"),
    (
        *_STREAM,
        Column("reason", STRING, "why it cannot be read"),
        Column("raw", _BINARY, "the entry's bytes; lines of files are not kept"),
        _DAY,
        _INGESTED,
    ),
)
NEWER: Final = Table(
    "bronze/newer",
    "Records of a newer schema, kept until a version of Weir that knows the schema reads them.",
    "a record",
    ("stream", "stream_id"),
    (
        *_STREAM,
        Column("version", _INT, "version of the record's schema"),
        Column("raw", _BINARY, "the record's bytes"),
        _DAY,
        _INGESTED,
    ),
)
GAPS: Final = Table(
    "bronze/gaps",
    "Records that are not there.",
    "consecutive records of an edge",
    ("edge", "first_missing"),
    (
        *_EDGE,
        Column("first_missing", LONG, "sequence number of the first missing record"),
        Column("last_missing", LONG, "sequence number of the last missing record"),
        Column("start", TIMESTAMP, "end of the last record before"),
        Column("end", TIMESTAMP, "start of the first record after"),
        Column("reason", STRING, "trimmed: Redis removed them before they were read; missing: they never came"),
        _DAY,
    ),
)
SPANS: Final = Table(
    "bronze/spans",
    "Spans of traced commands, each once, as the OpenTelemetry collector wrote them.",
    "a span",
    ("trace_id", "span_id"),
    (
        Column("trace_id", STRING, "the trace, in hexadecimal"),
        Column("span_id", STRING, "the span, in hexadecimal"),
        Column("parent_span_id", STRING, "the span above; null for a root"),
        Column("name", STRING, "command or step"),
        Column("service", STRING, "service.name of the program that recorded the span"),
        Column("start", TIMESTAMP, "start of the span"),
        Column("duration_us", LONG, "length in microseconds"),
        Column("status", STRING, "unset, ok or error"),
        Column("attributes", "map<string,string>", "numbers and protocol words from a closed vocabulary"),
        _DAY,
    ),
)
TABLES: Final[Mapping[str, Table]] = {table.name: table for table in (ROLLUPS, QUARANTINE, NEWER, GAPS, SPANS)}
