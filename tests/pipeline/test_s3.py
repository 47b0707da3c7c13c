"""Settings and Java libraries of tables in a bucket."""

from __future__ import annotations

from weir.pipeline import s3
from weir.pipeline.jars import JARS

PREFIX = "spark.hadoop.fs.s3a."


def test_amazons_own_store_needs_no_endpoint() -> None:
    found = s3.settings({"AWS_REGION": "eu-north-1"})
    assert found[f"{PREFIX}endpoint.region"] == "eu-north-1"
    assert f"{PREFIX}endpoint" not in found and f"{PREFIX}path.style.access" not in found


def test_another_store_is_reached_by_its_endpoint() -> None:
    found = s3.settings({"AWS_ENDPOINT_URL": "http://minio:9000", "AWS_DEFAULT_REGION": "here"})
    assert found[f"{PREFIX}endpoint"] == "http://minio:9000"
    assert found[f"{PREFIX}path.style.access"] == "true"
    assert found[f"{PREFIX}endpoint.region"] == "here"


def test_no_key_gets_into_the_settings_of_spark() -> None:
    found = s3.settings({"AWS_ACCESS_KEY_ID": "IDENTITY", "AWS_SECRET_ACCESS_KEY": "SECRET"})
    assert not any("IDENTITY" in value or "SECRET" in value for value in found.values())


def test_which_tables_are_in_a_bucket() -> None:
    assert s3.is_bucket("s3a://bucket/weir")
    assert not s3.is_bucket("data/pipeline/tables")


def test_every_library_is_pinned_once() -> None:
    files = [jar.file for jar in (*JARS, *s3.JARS)]
    assert len(set(files)) == len(files)
    assert all(len(jar.sha256) == 64 for jar in s3.JARS)
