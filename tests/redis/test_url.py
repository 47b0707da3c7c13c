"""Redis URLs."""

from dataclasses import replace
from pathlib import Path

import pytest

from weir.redis.errors import StoreError
from weir.redis.url import Node, RedisUrl, parse


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("redis://h", RedisUrl("single", (Node("h", 6379),))),
        ("redis://h:7000/2", RedisUrl("single", (Node("h", 7000),), db=2)),
        ("redis://[::1]:7000", RedisUrl("single", (Node("::1", 7000),))),
        ("redis://:p%40ss@h", RedisUrl("single", (Node("h", 6379),), password="p@ss")),
        ("redis://u:p@h", RedisUrl("single", (Node("h", 6379),), username="u", password="p")),
        ("rediss://h?ca=/ca.pem", RedisUrl("single", (Node("h", 6379),), tls=True, ca_file="/ca.pem")),
        ("rediss://h?verify=no", RedisUrl("single", (Node("h", 6379),), tls=True, verify=False)),
        ("unix:///run/r.sock", RedisUrl("single", (Node(path="/run/r.sock"),))),
        ("unix://:pw@/run/r.sock?db=3", RedisUrl("single", (Node(path="/run/r.sock"),), password="pw", db=3)),
        (
            "redis+sentinel://a,b:1/mymaster/1",
            RedisUrl("sentinel", (Node("a", 26379), Node("b", 1)), master="mymaster", db=1),
        ),
        (
            "rediss+sentinel://u:p@a/m?sentinel_password=x",
            RedisUrl(
                "sentinel",
                (Node("a", 26379),),
                username="u",
                password="p",
                tls=True,
                master="m",
                sentinel_password="x",
            ),
        ),
        ("redis+cluster://a,b:7001", RedisUrl("cluster", (Node("a", 6379), Node("b", 7001)))),
    ],
)
def test_forms(text: str, url: RedisUrl) -> None:
    assert parse(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://h",
        "redis://",
        "redis://a,b",
        "redis://h:port",
        "redis://h/x",
        "redis+other://h",
        "redis+sentinel://h",
        "redis+cluster://h/1",
        "redis://:secret@:1",
    ],
)
def test_what_is_not_one(text: str) -> None:
    with pytest.raises(StoreError) as caught:
        parse(text)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_is_not_shown() -> None:
    assert "hidden" not in repr(parse("redis://u:hidden@h?sentinel_password=hidden"))


def test_tls() -> None:
    assert parse("redis://h").ssl_context() is None
    context = parse("rediss://h").ssl_context()
    assert context is not None
    assert context.check_hostname
    unchecked = parse("rediss://h?verify=no").ssl_context()
    assert unchecked is not None
    assert not unchecked.check_hostname


def test_a_password_file_is_read_for_each_connection(tmp_path: Path) -> None:
    file = tmp_path / "password"
    url = replace(parse("redis://:word@h"), password_file=file)
    assert parse("redis://:word@h").current_password() == "word"
    for text, password in (("one\n", "one"), ("two", "two"), ("three\ntwo\n", "three")):
        file.write_text(text)
        assert url.current_password() == password
    file.unlink()
    with pytest.raises(OSError):
        url.current_password()
