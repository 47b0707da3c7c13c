"""Streams on every kind of Redis, and one line about each way in which Redis fails."""

from pathlib import Path
from typing import Any

import pytest
import redis
from redis.cluster import RedisCluster

from tests.redis.test_durability import port_of, running
from tests.redis.test_failover import sentinel
from tests.support.redis import DEBIAN, SERVERS, RedisServer, client_of, discard, start_server
from weir.pipeline.errors import PipelineError
from weir.pipeline.ingest.ids import ZERO, Extent, Id, Range
from weir.pipeline.ingest.registry import Registry, from_text, open_stream, to_text

COUNT = 1_200  # more than two pages


def fill(client: Any, registry: Registry) -> None:
    for n in range(1, COUNT + 1):
        client.xadd(registry.key, {b"r": b"%d" % n}, id=f"{1000 + n // 7}-{n}")


def check(registry: Registry) -> None:
    with open_stream(registry) as stream:
        extent = stream.extent()
        assert extent == Extent(Id(1000, 1), Id(1000 + COUNT // 7, COUNT), COUNT)
        found = [entry for page in stream.pages(Range(ZERO, extent.last)) for entry in page]
        assert [fields[b"r"] for _, fields in found] == [b"%d" % n for n in range(1, COUNT + 1)]
        part = Range(found[9][0], found[19][0])
        assert [entry for page in stream.pages(part) for entry in page] == found[10:20]


def test_one_redis_and_a_cluster(any_redis: RedisServer) -> None:
    registry = Registry(any_redis.url, "eu")
    if any_redis.kind.startswith("cluster"):
        host, port = any_redis.nodes[0].url.removeprefix("redis://").split(":")
        client: Any = RedisCluster(host=host, port=int(port.split("/")[0]))
    else:
        client = redis.Redis.from_url(any_redis.url)
    with open_stream(registry) as stream:
        assert stream.extent() is None
    fill(client, registry)
    client.close()
    check(registry)


@pytest.mark.timeout(120)
def test_sentinel() -> None:
    master = start_server(DEBIAN or SERVERS["valkey"], port=0)
    with running(master), sentinel(port_of(master)) as url:
        registry = Registry(url)
        with client_of(master) as client:
            fill(client, registry)
        check(registry)
        assert registry.name.endswith("/weir")


def refusal(registry: Registry) -> str:
    with pytest.raises(PipelineError) as error, open_stream(registry) as stream:
        stream.extent()
    text = str(error.value)
    assert "\n" not in text
    assert "s3cret" not in text
    return text


def test_failures(redis_server: RedisServer, tmp_path: Path) -> None:
    assert refusal(Registry("redis://127.0.0.1:1")) == "Redis at 127.0.0.1:1: it does not answer"
    assert refusal(Registry("redis+cluster://127.0.0.1:1")) == (
        "Redis at 127.0.0.1:1: it is no cluster, or none of its nodes answers"
    )
    assert refusal(Registry("redis+sentinel://127.0.0.1:1/weir")).endswith("no Sentinel names a master")
    assert refusal(Registry("ftp://x")).startswith("the Redis URL is not valid")
    gone = tmp_path / "gone"
    assert refusal(Registry("redis://127.0.0.1:1", password_file=str(gone))).endswith(
        f"{gone}: No such file or directory"
    )
    with redis.Redis.from_url(redis_server.url) as client:
        client.set(Registry("").key, "no stream")
    assert "WRONGTYPE" in refusal(Registry(redis_server.url))


def test_passwords(tmp_path: Path) -> None:
    node = start_server(port=0, password="s3cret")
    plain = f"redis://127.0.0.1:{port_of(node)}"
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    try:
        for url, given in ((plain, {"password": "s3cret"}), (plain, {"password_file": str(file)})):
            with open_stream(Registry(url, **given)) as stream:
                assert stream.extent() is None
        with open_stream(Registry(plain.replace("//", "//:s3cret@"))) as stream:
            assert stream.extent() is None
        for registry in (Registry(plain), Registry(plain, password="wrong")):
            assert refusal(registry).endswith("the password is missing or wrong")
    finally:
        discard(node)


def test_names_hold_no_password_and_texts_are_read_back() -> None:
    registries = [
        Registry("redis://user:s3cret@redis:6379/2", "eu"),
        Registry("redis+sentinel://a,b:1/main", password="s3cret"),
        Registry("unix:///run/redis.sock", password_file="/run/secret"),
    ]
    assert [each.name for each in registries] == ["redis:6379/2#eu", "a:26379,b:1/main", "/run/redis.sock"]
    assert [each.key for each in registries] == [b"{eu}:rollups", b"{weir}:rollups", b"{weir}:rollups"]
    assert from_text(to_text(registries)) == registries
