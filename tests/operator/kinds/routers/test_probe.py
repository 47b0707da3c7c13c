"""The proof of durability against real servers: one that syncs, one that does not, one with a replica, a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.redis import RedisServer, client_of, discard, start_server, until
from weir.redis.embedded import Embedded
from weir.redis.errors import StoreError
from weir_operator.kinds.routers.probe import StoreTarget, accepts, milliseconds, probe, target_url


def target(url: str, durability: str = "everysec", replicas: int = 1, password: str | None = None) -> StoreTarget:
    return StoreTarget(url, password, durability, replicas, "2s")


async def test_every_kind_of_redis_takes_a_write_and_syncs_it(any_redis: RedisServer) -> None:
    for durability in ("everysec", "fsync"):
        health = await probe(target(any_redis.url, durability), "ns")
        assert (health.reachable, health.durable, health.reason) == (True, True, "Proved"), health


async def test_without_an_append_only_file_nothing_is_promised() -> None:
    node = start_server()
    try:
        with client_of(node) as client:
            client.config_set("appendonly", "no")
        health = await probe(target(node.url, "fsync"), "ns")
        assert (health.reachable, health.durable, health.reason) == (True, False, "NotDurable")
        assert "append-only file" in health.message
    finally:
        discard(node)


@pytest.fixture
def pair() -> Iterator[tuple[Embedded, Embedded]]:
    """A master and its replica."""
    port = free_port()
    master, replica = start_server(port=port), start_server()
    with client_of(master) as one, client_of(replica) as other:
        other.replicaof("127.0.0.1", port)
        until(
            lambda: (
                one.info("replication")["connected_slaves"] == 1
                and other.info("replication")["master_link_status"] == "up"
            )
        )
    yield master, replica
    discard(replica)
    discard(master)


async def test_replicas_are_waited_for(pair: tuple[Embedded, Embedded]) -> None:
    master, replica = pair
    health = await probe(target(master.url, "replicated"), "ns")
    assert (health.durable, health.reason) == (True, "Proved")
    short = await probe(target(master.url, "replicated", replicas=2), "ns")
    assert (short.durable, short.reason) == (False, "NotDurable")
    assert short.message == "1 of 2 replicas had a write after 2s"
    replica.kill()
    gone = await probe(target(master.url, "replicated"), "ns")
    assert (gone.reachable, gone.durable) == (True, False)


async def test_an_unreachable_redis_is_reported_without_its_address(tmp_path: Path) -> None:
    health = await probe(target("redis://:secret@127.0.0.1:1/0"), "ns")
    assert (health.reachable, health.reason) == (False, "StoreUnreachable")
    assert "127.0.0.1" not in health.message
    assert "secret" not in health.message


async def test_a_wrong_password_and_a_wrong_url_are_reported() -> None:
    node = start_server(password="right")
    try:
        plain = node.url.replace(":right@", "")
        assert (await probe(target(plain, password="right"), "ns")).reachable
        refused = await probe(target(plain, password="wrong"), "ns")
        assert refused.reason == "StoreUnreachable"
        assert "wrong" not in refused.message.replace("wrong number", "")
    finally:
        discard(node)
    bad = await probe(target("gopher://x"), "ns")
    assert bad.reason == "StoreMisconfigured"


async def test_whether_redis_accepts_a_password() -> None:
    node = start_server(password="right", other_passwords=("too",))
    plain = node.url.replace(":right@", "")
    try:
        found = [await accepts(target(plain, password=word), "ns") for word in ("right", "too", "wrong")]
        assert found == [True, True, False]
    finally:
        discard(node)
    assert not await accepts(target(plain, password="right"), "ns"), "nobody answers"
    assert not await accepts(target("gopher://x"), "ns")


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("redis://redis:6379/0", "redis://redis.ns.svc:6379/0"),
        ("redis://redis/0", "redis://redis.ns.svc/0"),
        ("redis://user:pw@redis:1/0", "redis://user:pw@redis.ns.svc:1/0"),
        ("redis://redis.other:6379/0", "redis://redis.other:6379/0"),
        ("redis://10.0.0.1:6379", "redis://10.0.0.1:6379"),
        ("redis://[::1]:6379", "redis://[::1]:6379"),
        ("redis+sentinel://a,b:2,c.d/name", "redis+sentinel://a.ns.svc,b.ns.svc:2,c.d/name"),
    ],
)
def test_bare_names_are_the_routers_neighbours(url: str, seen: str) -> None:
    assert target_url(target(url), "ns") == seen


def test_milliseconds() -> None:
    assert [milliseconds(text) for text in ("300ms", "1s", "2m", "1h", "1d")] == [300, 1000, 120000, 3600000, 86400000]
    with pytest.raises(StoreError):
        milliseconds("soon")
