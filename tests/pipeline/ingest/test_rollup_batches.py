"""Rollups become rows: each once, with gaps, what cannot be read, and what is newer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.pipeline.ingest.support import NOW, SECOND, each_once, gaps, options, publish, record, rows, run, sequences
from tests.support.redis import RedisServer
from weir.pipeline import bronze
from weir.pipeline.ingest.registry import Registry
from weir.telemetry.rollups.record import encode

pytestmark = pytest.mark.spark


@pytest.fixture
def registry(redis_server: RedisServer) -> Registry:
    return Registry(redis_server.url)


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_server.url) as found:
        yield found


def test_a_record_is_a_row(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    publish(client, registry, record("a", 1))
    run(spark, options(tmp_path, registry))
    (row,) = rows(tmp_path, "bronze/rollups")
    assert row["start"].timestamp() * 1000 == NOW + SECOND
    assert (row["router"], row["program"], row["duration_ms"], row["version"]) == ("main", "smp", SECOND, 1)
    assert (row["commands"], row["events"]) == ([("SEND.OK", 1)], [("msgSent", 1)])
    assert row["histograms"] == [("send_msg", [(1, 2), (5, 1)])]
    assert row["services"] == [
        {
            "label": "shop",
            "role": "messages",
            "sessions": 1,
            "queues": 60,
            "drift": [("ok", 1)],
            "delivered": 1,
            "alls": [(7, 8)],
        }
    ]
    assert row["stream"] == registry.name


def test_batches_runs_and_repeated_records(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    given = options(tmp_path, registry, max_records=100)
    for n in range(1, 101):
        publish(client, registry, record("a", n), record("b", n), record("b", n), at=NOW + 3 * n)
    first = run(spark, given)
    assert len(first.batches) > 2
    assert (first.total.records, first.total.duplicates) == (200, 100)
    publish(client, registry, record("a", 101), record("a", 50), at=NOW + 900)
    second = run(spark, given)
    assert (second.total.records, second.total.duplicates) == (1, 1)
    assert not run(spark, given).batches
    assert sequences(tmp_path) == each_once(*(("a", n) for n in range(1, 102)), *(("b", n) for n in range(1, 101)))


def test_what_cannot_be_read_and_what_is_newer(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    import gzip

    newer = gzip.compress(json.dumps({"version": 7, "surprise": 1}).encode())
    publish(client, registry, record("a", 1), b"nonsense", newer, record("a", 2))
    done = run(spark, options(tmp_path, registry))
    assert (done.total.records, done.total.unreadable, done.total.newer) == (2, 1, 1)
    (bad,), (kept,) = rows(tmp_path, "bronze/quarantine"), rows(tmp_path, "bronze/newer")
    assert (bad["reason"], bad["raw"]) == ("not gzip", b"nonsense")
    assert (kept["version"], kept["raw"]) == (7, newer)
    assert sequences(tmp_path) == each_once(("a", 1), ("a", 2))


def test_records_that_an_older_version_kept_are_read(
    spark: Any, client: Any, registry: Registry, tmp_path: Path
) -> None:
    """An older Weir, which knew no schema 1, left two records behind. One of them was read meanwhile."""
    run(spark, options(tmp_path, registry))
    kept = [(registry.name, f"{NOW}-{n}", 1, bytearray(encode(record("a", n)))) for n in (1, 2)]
    kept.append((registry.name, f"{NOW}-3", 99, bytearray(b"a schema of the future")))
    frame = spark.createDataFrame(kept, "stream string, stream_id string, version int, raw binary")
    frame.selectExpr("*", "current_date() day", "now() ingested_at").write.format("delta").mode("append").save(
        str(tmp_path / bronze.NEWER.name)
    )
    publish(client, registry, record("a", 2), record("a", 3), at=NOW + 10)
    done = run(spark, options(tmp_path, registry))
    assert done.total.records == 3
    assert sequences(tmp_path) == each_once(("a", 1), ("a", 2), ("a", 3))
    assert [row["version"] for row in rows(tmp_path, "bronze/newer")] == [99]


def test_gaps_come_and_go(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    given = options(tmp_path, registry)
    publish(client, registry, record("clock", 1), record("a", 1), record("a", 4), at=NOW)
    run(spark, given)
    assert not gaps(tmp_path)
    publish(client, registry, record("clock", 2), at=NOW + 30 * SECOND)
    run(spark, given)
    assert gaps(tmp_path) == {("a", 2, 3, "missing")}
    publish(client, registry, record("a", 2), at=NOW + 31 * SECOND)
    run(spark, given)
    assert gaps(tmp_path) == {("a", 3, 3, "missing")}
    publish(client, registry, record("a", 3), at=NOW + 32 * SECOND)
    run(spark, given)
    assert not gaps(tmp_path)


def test_what_redis_removed_unread_is_a_gap(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    given = options(tmp_path, registry)
    publish(client, registry, *(record("a", n) for n in range(1, 4)), at=NOW)
    run(spark, given)
    publish(client, registry, *(record("a", n) for n in range(4, 9)), at=NOW + 10)
    client.xtrim(registry.key, maxlen=2, approximate=False)
    done = run(spark, given)
    assert (done.total.records, done.total.missing) == (2, 3)
    assert gaps(tmp_path) == {("a", 4, 6, "trimmed")}


def test_a_stream_that_was_made_anew(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    """Redis lost its data, and its clock is behind."""
    given = options(tmp_path, registry)
    publish(client, registry, record("a", 1), record("a", 2), at=NOW)
    run(spark, given)
    client.delete(registry.key)
    publish(client, registry, record("a", 2), record("a", 3), at=NOW - 5000)
    run(spark, given)
    assert sequences(tmp_path) == each_once(*(("a", n) for n in (1, 2, 3)))


def test_two_streams_and_one_that_comes_later(spark: Any, client: Any, registry: Registry, tmp_path: Path) -> None:
    other = Registry(registry.url, "ntf")
    publish(client, registry, record("a", 1))
    run(spark, options(tmp_path, registry))
    publish(client, other, record("b", 1))
    publish(client, registry, record("a", 2))
    run(spark, options(tmp_path, registry, other))
    run(spark, options(tmp_path, other))
    publish(client, registry, record("a", 3))
    assert run(spark, options(tmp_path, registry, other)).total.records == 1
    assert sequences(tmp_path) == each_once(("a", 1), ("a", 2), ("a", 3), ("b", 1))
