"""Random walks of two edges with several connections through the scripts, held against the model step by step."""

import asyncio
import itertools
import os
import unittest
from collections import Counter
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.router.store.default_keys import keys
from tests.router.store.harness import NOW, TODAY, TestEdge, open_edge
from tests.router.store.model import Model, Queue, Service, Token
from tests.support.redis import SERVERS, client_of, discard, start_server
from weir.redis.embedded import Embedded
from weir.router.store.records import DeleteResult, Entry, NsubResult, NtfItem, QueueInfo, QueueRecord, Status

QUOTA = 4
SERVICES = (b"service one".ljust(24), b"service two".ljust(24))
EDGES = ("a", "b")
CONNS = (1, 2, 3)

edges = st.sampled_from(EDGES)
conns = st.sampled_from(CONNS)
services = st.sampled_from(SERVICES)
sessions = st.sampled_from((0, 0, 0, 0, 1, 2))  # the last takeover, or one before
ages = st.sampled_from((0, 0, 0, 0, 5, 50))  # how far back expiry reaches: nothing, or all but the last few


class Walk(RuleBasedStateMachine):
    """Each rule does a thing in the model and in the store, and compares answers and events."""

    server: Embedded
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.model = Model(QUOTA)
        self.edges: dict[str, TestEdge] = {}
        self.records: dict[bytes, QueueRecord] = {}
        self.generations = itertools.count(1000)
        self.clock = itertools.count(NOW)
        self.tokens: list[tuple[Queue, Token]] = []  # subscriptions that were, to acknowledge with
        self.epochs: list[tuple[bytes, Token]] = []
        self.partitions: set[int] = set()
        self.deaths = 0

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    @initialize()
    def start(self) -> None:
        with client_of(self.server) as client:
            client.flushall()
        for name in EDGES:
            self.open(name)
        for service in SERVICES:
            self.model.services[service] = Service()
            self.partitions.add(self.edges["a"].store.partition(service))
        # A walk that starts in the middle meets more: a service with queues, and messages in flight.
        self.takeover("a", 1, SERVICES[0])
        for n in range(3):
            self.new("b", n == 2, 3)
        for n in range(2):
            self.sub_with_a_service(n, 0, 0)
            self.send("b", n, 0, True)

    def open(self, name: str) -> None:
        self.edges[name] = self.run(open_edge(self.server.url, quota=QUOTA, lease=600.0, poll=600.0))
        self.model.live.add(name)

    def teardown(self) -> None:
        for service in self.model.services:
            totals = self.run(self.edges["a"].store.services.service_totals(service))
            assert (totals.count, totals.ids_hash, totals.ready) == self.model.totals(service)
        for edge in self.edges.values():
            self.run(edge.close())
        self.runner.close()

    def record(self, q: Queue) -> QueueRecord:
        """Return the record as an edge does: fetch it if it is not in the cache or is outdated."""
        return self.records[q.rcv_id]

    def queue(self, index: int) -> Queue:
        queues = list(self.model.queues.values())
        return queues[index % len(queues)]

    def compare_events(self) -> None:
        for name, edge in self.edges.items():
            came = self.run(self.settled(edge))
            assert Counter(came) == Counter(self.model.told.get(name, [])), name
            came.clear()
        self.model.told.clear()

    async def settled(self, edge: TestEdge) -> list[Any]:
        """As the harness does it, where this walk leaves anything."""
        for p in self.partitions:
            edge.store.inbox.drain(p)
        for _ in range(3):
            await edge.store.core.muxes[0].ask(b"*1\r\n$4\r\nPING\r\n")
        return edge.events

    async def totals(self, service: bytes) -> tuple[int, bytes, int, bytes | None]:
        """The service's share of these partitions, added up; the rest has none (checked at the end)."""
        store = self.edges["a"].store
        asked = []
        for p in self.partitions:
            asked.append(store.core.ask(p, b"HMGET", keys.service(p, service), b"c", b"h"))
            asked.append(store.core.ask(p, b"SCARD", keys.service_ready(p, service)))
        home = store.partition(service)
        *shares, owner = await asyncio.gather(*asked, store.core.ask(home, b"HGET", keys.service(home, service), b"o"))
        total = 0
        for _, ids_hash in shares[::2]:
            total ^= int.from_bytes(ids_hash or b"", "big")
        count = sum(int(c or 0) for c, _ in shares[::2])
        return count, total.to_bytes(16, "big"), sum(shares[1::2]), owner

    has_queues = precondition(lambda self: self.model.queues)

    @rule(edge=edges, subscribed=st.booleans(), conn=conns)
    @precondition(lambda self: len(self.model.queues) < 6)
    def new(self, edge: str, subscribed: bool, conn: int) -> None:
        token = Token(edge, conn, next(self.generations)) if subscribed else None
        rec = self.run(self.edges[edge].new(ntf=True, owner=token.owner if token else None))
        self.records[rec.rcv_id] = rec
        self.partitions.add(rec.partition)
        self.model.queues[rec.rcv_id] = Queue(rec.rcv_id, rec.ntf_id, owner=token)

    @rule(edge=edges, which=st.integers(0, 5), age=ages, ntf=st.booleans())
    @has_queues
    def send(self, edge: str, which: int, age: int, ntf: bool) -> None:
        q = self.queue(which)
        ts = next(self.clock)
        before = ts - age if age else 0
        entry = Entry(os.urandom(24), ts, int(ntf))
        item = NtfItem(ts, os.urandom(24), b"") if ntf else None
        expected = self.model.send(q, edge, entry, before, ntf=ntf)
        got = self.run(self.edges[edge].send_item(self.record(q), entry.msg_id, item, ts=ts, expire_before=before))
        assert got == expected

    @rule(edge=edges, conn=conns, which=st.integers(0, 5), age=ages)
    @has_queues
    def sub(self, edge: str, conn: int, which: int, age: int) -> None:
        q = self.queue(which)
        token = Token(edge, conn, next(self.generations))
        self.subscribe(q, token, None, age)

    @rule(which=st.integers(0, 5), session=sessions, age=ages)
    @precondition(lambda self: self.model.queues and self.epochs)
    def sub_with_a_service(self, which: int, session: int, age: int) -> None:
        """By whoever owns the service, or once did."""
        service, token = self.epochs[-1 - session % len(self.epochs)]
        if token.edge in self.model.live:
            self.subscribe(self.queue(which), token, service, age)

    def subscribe(self, q: Queue, token: Token, service: bytes | None, age: int) -> None:
        before = next(self.clock) - age if age else 0
        expected = self.model.sub(q, token, service, before)
        got = self.run(self.edges[token.edge].sub(self.record(q), token.conn, token.gen, service, expire_before=before))
        assert got == expected
        if got.status is Status.OK:
            self.tokens.append((q, token))

    @rule(which=st.integers(0, 5), age=ages)
    @has_queues
    def ack_by_its_owner(self, which: int, age: int) -> None:
        q = self.queue(which)
        if q.in_flight is not None and q.in_flight[1].edge in self.model.live:
            self.acknowledge(q, q.in_flight[1], q.in_flight[0], age)

    @rule(which=st.integers(0, 50), any_message=st.booleans(), age=ages)
    @precondition(lambda self: self.tokens)
    def ack_by_somebody(self, which: int, any_message: bool, age: int) -> None:
        """By a subscription that is or was."""
        q, token = self.tokens[-1 - which % len(self.tokens)]
        if q.rcv_id in self.model.queues and token.edge in self.model.live:
            self.acknowledge(q, token, b"" if any_message or not q.messages else q.messages[0].msg_id, age)

    def acknowledge(self, q: Queue, token: Token, msg_id: bytes, age: int) -> None:
        before = next(self.clock) - age if age else 0
        expected = self.model.ack(q, token, msg_id, before)
        got = self.run(self.edges[token.edge].ack(self.record(q), token.conn, token.gen, msg_id, expire_before=before))
        assert got == expected

    @rule(edge=edges, which=st.integers(0, 5))
    @has_queues
    def get_and_ack(self, edge: str, which: int) -> None:
        q = self.queue(which)
        head = self.run(self.edges[edge].store.messages.peek(self.record(q), 0))
        assert head == (q.messages[0] if q.messages else None)
        msg_id = head.msg_id if head else os.urandom(24)
        got = self.run(self.edges[edge].store.messages.ack_get(self.record(q), msg_id, TODAY))
        assert got == self.model.ack_get(q, msg_id)

    @rule(edge=edges, conn=conns, which=st.integers(0, 5))
    @has_queues
    def nsub_and_take(self, edge: str, conn: int, which: int) -> None:
        q = self.queue(which)
        token = Token(edge, conn, next(self.generations))
        waits = self.model.nsub(q, token)
        got = self.run(self.edges[edge].nsub(self.record(q), conn, token.gen))
        assert got == NsubResult(Status.OK, waits)
        items = self.run(self.edges[edge].take(self.record(q), conn, token.gen))
        assert len(items) == self.model.take_ntfs(q, token)
        if items:
            assert self.run(self.edges[edge].take(self.record(q), conn, token.gen, items[-1].nonce)) == []

    @rule(edge=edges, conn=conns, service=services)
    def takeover(self, edge: str, conn: int, service: bytes) -> None:
        expected = self.model.totals(service)
        token = self.model.takeover(service, edge, conn)
        got = self.run(self.edges[edge].store.services.takeover(service, conn, TODAY))
        assert (got.epoch, got.count, got.ids_hash, got.ready) == (token.gen, *expected)
        self.epochs.append((service, token))

    @rule(session=sessions, age=ages)
    @precondition(lambda self: self.epochs)
    def fold(self, session: int, age: int) -> None:
        service, token = self.epochs[-1 - session % len(self.epochs)]
        if token.edge not in self.model.live:
            return
        before = next(self.clock) - age if age else 0
        expected = self.model.fold(service, token, before)
        store = self.edges[token.edge].store
        folded: dict[bytes, Entry] = {}
        fenced = False
        for q in list(self.model.queues.values()):
            cursor: int | None = 0
            while cursor is not None:
                page = self.run(
                    store.services.fold_page(
                        service, token.conn, token.gen, self.record(q).partition, cursor, 3, before
                    )
                )
                assert not folded.keys() & dict(page.entries).keys()
                folded |= dict(page.entries)
                cursor, fenced = page.cursor, fenced or page.fenced
        if expected is None:
            assert folded == {}
            assert fenced or not self.model.queues
        else:
            assert folded == expected
            for rcv_id in folded:
                self.tokens.append((self.model.queues[rcv_id], token))

    @rule(edge=edges, conn=conns, service=services, which=st.integers(0, 5))
    @has_queues
    def takeover_send_and_fold(self, edge: str, conn: int, service: bytes, which: int) -> None:
        """A message that arrives between the takeover and the fold."""
        self.takeover(edge, conn, service)
        self.send(edge, which, 0, False)
        self.fold(0, 0)

    @rule(edge=edges, conn=conns)
    def disconnect(self, edge: str, conn: int) -> None:
        mine = [q for q in self.model.queues.values() if q.owner is not None and q.owner.is_of(edge, conn)]
        ntfs = [q for q in self.model.queues.values() if q.ntf_owner is not None and q.ntf_owner.is_of(edge, conn)]
        owned = [
            (s, v.owner) for s, v in self.model.services.items() if v.owner is not None and v.owner.is_of(edge, conn)
        ]
        self.model.disconnect(edge, conn)
        store = self.edges[edge].store
        self.run(self.edges[edge].release(conn, [q.rcv_id for q in mine], [q.rcv_id for q in ntfs]))
        for service, token in owned:
            self.run(store.services.release_service(service, conn, token.gen))

    @rule(edge=edges)
    @precondition(lambda self: self.deaths < 2)
    def edge_dies(self, edge: str) -> None:
        """The edge's lease ends, and a new process takes its place. All that the edge owned is free."""
        self.deaths += 1
        self.compare_events()
        self.run(self.edges[edge].close())
        for conn in CONNS:
            self.model.disconnect(edge, conn)
        self.model.live.discard(edge)
        self.tokens = [(q, token) for q, token in self.tokens if token.edge != edge]
        self.epochs = [(service, token) for service, token in self.epochs if token.edge != edge]
        for q in self.model.queues.values():
            if q.in_flight is not None and q.in_flight[1].edge == edge:
                q.in_flight = (q.in_flight[0], q.in_flight[1]._replace(edge="dead"))
        self.open(edge)

    @rule(edge=edges, conn=conns, which=st.integers(0, 5))
    @has_queues
    def delete(self, edge: str, conn: int, which: int) -> None:
        q = self.queue(which)
        expected = self.model.delete(q, edge, conn)
        got = self.run(self.edges[edge].store.queues.delete(self.record(q), conn))
        assert got == DeleteResult(Status.OK, *expected)
        assert self.run(self.edges[edge].rcv(q.rcv_id)) is None

    @invariant()
    def events_are_those_of_the_model(self) -> None:
        if self.edges:
            self.compare_events()

    @invariant()
    def totals_are_exact(self) -> None:
        for service in self.model.services:
            *totals, owner = self.run(self.totals(service))
            assert tuple(totals) == self.model.totals(service)
            expected = self.model.services[service].owner
            if expected is not None:
                assert owner == self.edges[expected.edge].store.core.token(expected.conn, expected.gen)

    @invariant()
    def queues_are_those_of_the_model(self) -> None:
        self.run(self.compare_queues())

    async def compare_queues(self) -> None:
        for q in self.model.queues.values():
            info, found = await asyncio.gather(
                self.edges["b"].store.messages.info(self.record(q), 0), self.edges["a"].rcv(q.rcv_id)
            )
            assert isinstance(info, QueueInfo)
            assert (info.size, info.head) == (len(q.messages), q.messages[0] if q.messages else None)
            assert found == self.record(q)
            assert found.rcv_service == q.service


def _walk_on(kind: str, walks: int) -> Any:
    """WEIR_WALKS asks for more, and others each time."""

    @pytest.mark.timeout(600)
    class TestWalk(Walk.TestCase):  # type: ignore[name-defined,misc]
        settings = settings(
            max_examples=int(os.environ.get("WEIR_WALKS", walks)),
            stateful_step_count=60,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            derandomize="WEIR_WALKS" not in os.environ,
        )

        @classmethod
        def setUpClass(cls) -> None:
            if SERVERS[kind] is None:
                raise unittest.SkipTest(f"{kind} is not installed")
            Walk.server = start_server(SERVERS[kind])

        @classmethod
        def tearDownClass(cls) -> None:
            discard(Walk.server)

    return TestWalk


TestWalkOnValkey = _walk_on("valkey", 20)
TestWalkOnRedis6 = _walk_on("redis6", 10)
_elsewhere = pytest.mark.all("another kind of Redis")
TestWalkOnRedis7 = _elsewhere(_walk_on("redis7", 10))
TestWalkOnRedis8 = _elsewhere(_walk_on("redis8", 10))
TestWalkOnValkey8 = _elsewhere(_walk_on("valkey8", 10))
TestManyWalksOnValkey = pytest.mark.all("more of the same")(_walk_on("valkey", 60))
