"""Failures of Redis: their kinds, one log line per kind and minute, and nothing of the command in any of them."""

import asyncio

import pytest

from tests.redis.proxy import Proxy
from tests.router.store.harness import open_edge
from tests.support.redis import RedisServer, client_of
from weir.redis.connection import ReplyError
from weir.redis.errors import UNAVAILABLE, Unavailable
from weir.redis.failures import DISCONNECTED, TIMEOUT, Failures
from weir.redis.resp import command

SECRET = b"{0}:q:an-id-of-a-client"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "weir.redis.failures"]


def test_one_line_per_kind_and_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    failures = Failures(lambda: now)
    for second in range(130):
        now = float(second)
        failures.count("OOM", 2)
        if second == 30:
            failures.count(TIMEOUT)
    assert failures.counts == {"OOM": 260, TIMEOUT: 1}
    assert lines(caplog) == [
        "Redis' memory is full (OOM, 2 since the last such line)",
        "Redis does not answer in time (timeout, 1 since the last such line)",
        "Redis' memory is full (OOM, 120 since the last such line)",
        "Redis' memory is full (OOM, 120 since the last such line)",
    ]
    assert failures.recent() == ["Redis' memory is full (OOM)."]
    now = 200.0
    assert failures.recent() == []


IN_6_2 = "ERR Error running script (call to f_1a): @user_script:1: "


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'.", "OOM"),
        ("ERR unknown command 'NOSUCH'", "ERR"),
        ("NOSUCHWORD", "NOSUCHWORD"),
        ("something else", "ERR"),
        ("", "ERR"),
        (
            f"{IN_6_2}@user_script: 1: -READONLY You can't write",
            "READONLY",
        ),
        (f"{IN_6_2}WRONGTYPE Operation against a key", "WRONGTYPE"),
        (f"{IN_6_2}user_script:1: attempt to compare", "ERR"),
        ("@user_script: 1: -MISCONF Redis is configured to save RDB snapshots", "MISCONF"),
        (
            "ERR ACL failure in script: User default has no permissions to run the 'set' command",
            "NOPERM",
        ),
    ],
)
def test_codes(text: str, code: str) -> None:
    assert ReplyError(text).code == code


@pytest.mark.parametrize("call", ["call", "pcall"])
async def test_a_script_that_meets_a_full_redis(any_redis: RedisServer, call: str) -> None:
    edge = await open_edge(any_redis.url)
    for node in any_redis.nodes:
        with client_of(node) as client:
            client.config_set("maxmemory", "1")
    script = f"return redis.{call}('SET', KEYS[1], 'x')".encode()
    try:
        with pytest.raises(ReplyError) as raised:
            await edge.store.core.ask(0, b"EVAL", script, 1, b"{0}:x")
    finally:
        for node in any_redis.nodes:
            with client_of(node) as client:
                client.config_set("maxmemory", "0")
        await edge.close()
    assert raised.value.code == "OOM"


async def test_kinds_of_a_connection(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    edge = await open_edge(proxy.url, deadline=0.5, poll=1000.0, lease=100.0, lease_refresh=50.0)
    core, failures = edge.store.core, edge.store.topology.failures
    proxy.hold()
    with pytest.raises(Unavailable):
        await core.ask(0, b"GET", SECRET)
    assert failures.counts[TIMEOUT] >= 1
    proxy.release()
    with pytest.raises(ReplyError):
        await core.ask(0, b"NOSUCH", SECRET)
    assert failures.counts["ERR"] == 1
    proxy.cut()
    await edge.until(lambda: edge.restored > 0)
    assert failures.counts[DISCONNECTED] >= 1
    await edge.close()
    assert {line.split("(")[1].split(",")[0] for line in lines(caplog)} == {"timeout", "ERR", "disconnected"}
    assert "an-id" not in caplog.text


async def test_a_callback_that_fails_harms_no_other(proxy: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    """An error in a callback would break the connection, with the answers of other callers behind it."""
    edge = await open_edge(proxy.url)
    mux = edge.store.core.muxes[0]
    connections = proxy.connections

    def mistaken(_reply: object, _ctx: object) -> None:
        raise KeyError(SECRET)

    mux.submit(command(b"ECHO", b"1"), mistaken, None)
    assert await mux.ask(command(b"ECHO", b"2")) == b"2"
    assert proxy.connections == connections
    assert "the answer to a command was not handled (KeyError in test_failures.py, line " in caplog.text
    assert "an-id" not in caplog.text
    await edge.close()


async def test_commands_time_out_though_a_callback_fails(proxy: Proxy) -> None:
    edge = await open_edge(proxy.url, deadline=0.3)
    mux, answers = edge.store.core.muxes[0], asyncio.Queue[object]()

    def mistaken(_reply: object, _ctx: object) -> None:
        raise KeyError

    proxy.hold()
    mux.submit(command(b"ECHO", b"1"), mistaken, None)
    mux.submit(command(b"ECHO", b"2"), lambda reply, _: answers.put_nowait(reply), None)
    assert await asyncio.wait_for(answers.get(), 10) is UNAVAILABLE
    proxy.release()
    await edge.close()
