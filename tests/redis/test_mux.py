"""The multiplexer: order, one write a turn, deadlines, broken connections, Redis' errors."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.redis.proxy import Proxy
from tests.router.store.harness import NOW, TODAY, TestEdge, awaited, open_edge
from tests.support.redis import RedisServer, client_of, discard, start_server, until
from weir.redis.connection import ReplyError
from weir.redis.embedded import Embedded
from weir.redis.errors import UNAVAILABLE, StoreError, Unavailable
from weir.redis.mux import Mux
from weir.redis.resp import as_retry, command, script_call
from weir.router.store.records import AckResult, Owner, QueueInfo, SendResult, Status
from weir.router.store.store import Store, StoreConfig


@pytest.fixture
async def edge(proxy: Proxy) -> AsyncIterator[TestEdge]:
    edge = await open_edge(proxy.url, bytes(range(32)), deadline=1.0, poll=1000.0)
    yield edge
    proxy.release()
    await edge.close()


def mux_of(edge: TestEdge) -> Mux:
    return edge.store.core.muxes[0]


async def test_one_round_trip_per_send_and_per_ack_that_empties(edge: TestEdge) -> None:
    rec = await edge.new(owner=Owner(1, 1))
    for _ in range(3):
        before = edge.store.round_trips, mux_of(edge).flushes
        assert await edge.send(rec) == SendResult(Status.OK, Owner(1, 1))
        assert (edge.store.round_trips, mux_of(edge).flushes) == (before[0] + 1, before[1] + 1)
        assert await edge.ack(rec, 1, 1) == AckResult(Status.OK, 0)
        assert (edge.store.round_trips, mux_of(edge).flushes) == (before[0] + 2, before[1] + 2)


async def test_calls_of_one_turn_share_a_write_and_keep_their_order(edge: TestEdge) -> None:
    before = mux_of(edge).flushes
    answers: list[Any] = []
    for n in range(100):
        mux_of(edge).submit(command(b"ECHO", b"%d" % n), lambda reply, n: answers.append((n, reply)), n)
    await mux_of(edge).ask(command(b"PING"))
    assert answers == [(n, b"%d" % n) for n in range(100)]
    assert mux_of(edge).flushes == before + 1


async def test_what_was_not_answered_is_sent_again_in_order(edge: TestEdge, proxy: Proxy) -> None:
    rec = await edge.new()
    sent = [os.urandom(24) for _ in range(50)]
    calls = []
    for n, msg in enumerate(sent):
        calls.append(
            awaited(lambda done, m=msg: edge.store.messages.send(rec, m, NOW, False, m, TODAY, 0, None, b"", done))
        )
        if n in (5, 20, 33):
            await asyncio.sleep(0)
            proxy.cut()
        if n % 7 == 0:
            await asyncio.sleep(0.01)
    assert [result.status for result in await asyncio.gather(*calls)] == [Status.OK] * 50
    head = (await edge.sub(rec, 1, 1)).head
    got = []
    while head is not None:
        got.append(head.msg_id)
        head = (await edge.ack(rec, 1, 1, head.msg_id)).next
    assert got == sent
    assert edge.restored >= 1


async def test_a_deadline(edge: TestEdge, proxy: Proxy) -> None:
    rec = await edge.new()
    proxy.hold()
    slow = awaited(
        lambda done: edge.store.messages.send(rec, os.urandom(24), NOW, False, b"x", TODAY, 0, None, b"", done)
    )
    with pytest.raises(Unavailable):
        await edge.store.queues.suspend(rec)
    assert await slow is UNAVAILABLE
    proxy.release()
    # Late answers are thrown away; the connection goes on.
    assert await mux_of(edge).ask(command(b"ECHO", b"hello")) == b"hello"
    found = await edge.rcv(rec.rcv_id)
    assert found is not None
    assert found.rev == 2


async def test_an_answer_that_comes_too_late(edge: TestEdge, proxy: Proxy) -> None:
    """The caller was told UNAVAILABLE; what the script put in flight it is told as well, once."""
    rec = await edge.new(owner=Owner(1, 1))
    proxy.hold()
    sent: list[Any] = []
    edge.store.messages.send(rec, os.urandom(24), NOW, False, b"x", TODAY, 0, None, b"", sent.append)
    acked: list[Any] = []
    edge.store.messages.ack(rec, 1, 1, b"", 0, TODAY, acked.append)
    async with asyncio.timeout(10):
        while not (sent and acked):
            await asyncio.sleep(0.05)
    assert sent == acked == [UNAVAILABLE]
    proxy.release()
    await mux_of(edge).ask(command(b"ECHO", b"hello"))
    assert sent == [UNAVAILABLE, SendResult(Status.OK, Owner(1, 1))]
    assert [answer.status for answer in acked[1:]] == [Status.OK]


async def test_an_operation_that_failed_is_not_sent_again(edge: TestEdge, proxy: Proxy) -> None:
    rec = await edge.new()
    proxy.hold()
    sent: list[Any] = []
    edge.store.messages.send(rec, os.urandom(24), NOW, False, b"x", TODAY, 0, None, b"", sent.append)
    async with asyncio.timeout(10):
        while not sent:
            await asyncio.sleep(0.05)
    proxy.cut()
    proxy.release()
    await mux_of(edge).ask(command(b"ECHO", b"hello"))
    info = await edge.store.messages.info(rec, 0)
    assert sent == [UNAVAILABLE] and isinstance(info, QueueInfo) and info.size == 0


@pytest.mark.parametrize("port", [0, None], ids=["TCP", "Unix socket"])
async def test_a_connection_that_was_given_up_is_ended_in_redis(port: int | None) -> None:
    """Commands of the old connection in Redis' buffers must not run after the new connection has repeated them."""
    node = start_server(port=port)
    edge = await open_edge(node.url, bytes(range(32)))
    mux = mux_of(edge)
    before: int = await mux.ask(command(b"CLIENT", b"ID"))
    os.kill(node.pid, signal.SIGSTOP)
    mux.drop()
    mux.submit(command(b"ECHO", b"hello"), lambda *_: None, None)
    await asyncio.sleep(0.1)
    os.kill(node.pid, signal.SIGCONT)
    after: int = await mux.ask(command(b"CLIENT", b"ID"))
    clients: bytes = await mux.ask(command(b"CLIENT", b"LIST"))
    ids = {int(line.split()[0].removeprefix(b"id=")) for line in clients.splitlines()}
    assert after in ids and before not in ids and after != before
    await edge.close()
    discard(node)


async def test_while_redis_is_away(edge: TestEdge, proxy: Proxy) -> None:
    rec = await edge.new()
    proxy.refusing = True
    proxy.cut()
    late = awaited(lambda done: edge.store.lookups.fetch_rcv(rec.rcv_id, done))
    assert await late is UNAVAILABLE
    waiting = awaited(lambda done: edge.store.lookups.fetch_rcv(rec.rcv_id, done))
    proxy.refusing = False
    assert await waiting == rec
    await edge.until(lambda: edge.restored > 0)


async def test_a_dead_peer_is_left(edge: TestEdge, proxy: Proxy) -> None:
    """The connection stays open but silent: after twice the deadline the mux makes a new one."""
    connections = proxy.connections
    proxy.hold()
    calls = []
    for _ in range(30):
        calls.append(awaited(lambda done: edge.store.lookups.fetch_rcv(b"x" * 24, done)))
        await asyncio.sleep(0.1)
        if proxy.connections > connections:
            break
    assert proxy.connections > connections
    proxy.release()
    await asyncio.gather(*calls)
    assert await edge.rcv(b"x" * 24) is None


async def test_forgotten_scripts_are_loaded_again(edge: TestEdge) -> None:
    rec = await edge.new()
    await edge.store.core.ask(0, b"SCRIPT", b"FLUSH")
    sent = [os.urandom(24) for _ in range(20)]
    calls = [
        awaited(lambda done, m=msg: edge.store.messages.send(rec, m, NOW, False, m, TODAY, 0, None, b"", done))
        for msg in sent
    ]
    assert {result.status for result in await asyncio.gather(*calls)} == {Status.OK}
    assert (await edge.store.messages.info(rec, 0)).size == 20  # type: ignore[union-attr]
    head = (await edge.sub(rec, 1, 1)).head
    got = []
    while head is not None:
        got.append(head.msg_id)
        head = (await edge.ack(rec, 1, 1, head.msg_id)).next
    assert got == sent


async def test_errors_of_redis(edge: TestEdge) -> None:
    with pytest.raises(ReplyError) as caught:
        await mux_of(edge).ask(command(b"NOSUCH"))
    assert caught.value.code == "ERR"
    answers: list[Any] = []
    mux_of(edge).submit(command(b"LLEN", b"{weir}:placement"), lambda reply, _: answers.append(reply), None)
    await mux_of(edge).ask(command(b"PING"))
    assert answers == [UNAVAILABLE]
    assert edge.store.topology.failures.counts == {"ERR": 1, "WRONGTYPE": 1}


async def test_a_body_that_redis_cannot_take(edge: TestEdge) -> None:
    rec = await edge.new()
    await edge.store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", b"1")
    assert await edge.send(rec) is UNAVAILABLE
    await edge.store.core.ask(0, b"CONFIG", b"SET", b"maxmemory", b"0")
    assert await edge.send(rec) == SendResult(Status.OK)
    assert (await edge.store.messages.info(rec, 0)).size == 1  # type: ignore[union-attr]


class Answers(asyncio.Transport):
    """A node that answers each write with what comes next in its list."""

    def __init__(self, *answers: bytes) -> None:
        super().__init__()
        self._answers = list(answers)
        self.written: list[bytes] = []

    async def dial(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))
        asyncio.get_running_loop().call_soon(self._protocol.data_received, self._answers.pop(0))

    def abort(self) -> None:
        pass


async def test_a_body_that_is_refused_while_its_script_is_not() -> None:
    """A node may become ready between the SET and the script: both are repeated, the script as a retry."""
    node = Answers(b":1\r\n$0\r\n\r\n", b"-LOADING\r\n:0\r\n", b"+OK\r\n:0\r\n")
    mux = Mux(node.dial, list)
    mux.start_soon()
    await mux.started
    call = script_call(b"SCRIPT", [b"k"], [])
    assert await awaited(lambda done: mux.script_with_body(b"SET", b"body", call, lambda r, _: done(r), None)) == 0
    assert node.written[1:] == [b"SETbody" + call, b"SETbody" + as_retry(call)]
    await mux.close()


async def test_a_replica_is_not_a_master(proxy: Proxy, server: Embedded) -> None:
    """READONLY: the mux dials again until it finds a master."""
    edge = await open_edge(proxy.url, deadline=30.0, poll=1000.0)  # a slow machine needs a while to dial
    rec = await edge.new()
    await edge.store.core.ask(0, b"REPLICAOF", b"127.0.0.1", b"1")
    sending = asyncio.ensure_future(edge.send(rec))
    await asyncio.sleep(0.2)
    assert not sending.done()
    with client_of(server) as client:
        client.replicaof("NO", "ONE")
    assert await sending == SendResult(Status.OK)
    await edge.close()


async def test_once_is_not_repeated(edge: TestEdge, proxy: Proxy) -> None:
    answers: list[Any] = []
    mux = mux_of(edge)
    proxy.lose_answer_to(b"once-counter")
    mux.once(command(b"INCR", b"{0}:once-counter"), lambda reply, _: answers.append(reply), None)
    await edge.until(lambda: edge.restored > 0)
    assert answers == [UNAVAILABLE]
    assert await edge.store.core.ask(0, b"GET", b"{0}:once-counter") == b"1"


async def test_closing_fails_what_is_open(proxy: Proxy) -> None:
    edge = await open_edge(proxy.url)
    proxy.hold()
    call = awaited(lambda done: edge.store.lookups.fetch_rcv(b"x" * 24, done))
    await edge.store.topology.close()
    assert await call is UNAVAILABLE


async def test_no_redis_is_one_line(redis_server: RedisServer) -> None:
    with pytest.raises(StoreError) as caught:
        await Store.open(StoreConfig("redis://127.0.0.1:1", bytes(32), connect_timeout=0.5))
    assert "127.0.0.1:1" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_passwords() -> None:
    node = start_server(port=0, password="p@ss word")
    try:
        edge = await open_edge(node.url)
        await edge.new()
        await edge.close()
        bare = node.url.split("@")[-1]
        edge = await open_edge(f"redis://{bare}", password="p@ss word")
        await edge.close()
        for url in (f"redis://{bare}", f"redis://:wrong@{bare}"):
            with pytest.raises(StoreError) as caught:
                await open_edge(url)
            assert "refuses" in str(caught.value)
            assert "wrong" not in str(caught.value).replace("wrong username or password", "")
    finally:
        discard(node)


async def test_a_password_is_rotated_while_an_edge_runs(tmp_path: Path) -> None:
    """Add the new password, give it to the edge, remove the old one: every connection is accepted all the while."""
    file = tmp_path / "password"
    node = start_server(port=0, password="old")
    bare = node.url.split("@")[-1]
    file.write_text("old\n")
    edge = await open_edge(f"redis://{bare}", password_file=file)
    try:
        rec = await edge.new(owner=Owner(1, 1))
        for accepted, used in (
            (("old", "new"), "old"),
            (("old", "new"), "new"),
            (("new", "old"), "new"),
            (("new",), "new"),
        ):
            assert node.accept_passwords(accepted)
            file.write_text(used)
            generation = mux_of(edge).generation
            mux_of(edge).drop()
            assert await edge.send(rec) == SendResult(Status.OK, Owner(1, 1))
            assert mux_of(edge).generation > generation, "the edge has connected again"
            assert await edge.ack(rec, 1, 1) == AckResult(Status.OK, 0)
        second = await open_edge(f"redis://{bare}", password_file=file)
        await second.close()
    finally:
        await edge.close()
        discard(node)


async def test_an_edge_waits_for_a_password_that_comes_late(tmp_path: Path) -> None:
    """Redis has dropped the old password already: the edge reconnects as soon as its file has the new one."""
    file = tmp_path / "password"
    node = start_server(port=0, password="old")
    bare = node.url.split("@")[-1]
    file.write_text("old")
    edge = await open_edge(f"redis://{bare}", password_file=file)
    try:
        rec = await edge.new(owner=Owner(1, 1))
        assert node.accept_passwords(("new",))
        mux_of(edge).drop()
        sending = asyncio.ensure_future(edge.send(rec))
        with redis.Redis.from_url(f"redis://:new@{bare}") as client:
            await asyncio.to_thread(until, lambda: int(client.info("stats")["acl_access_denied_auth"]) > 1)
        assert not sending.done()
        file.write_text("new")
        assert await sending == SendResult(Status.OK, Owner(1, 1))
    finally:
        await edge.close()
        discard(node)


def test_retry_form() -> None:
    wire = script_call(b"HEAD", [b"k"], [b"a", 5])
    assert wire.endswith(b"$1\r\n5\r\n$1\r\n0\r\n")
    assert as_retry(wire) == wire[:-3] + b"1\r\n"
