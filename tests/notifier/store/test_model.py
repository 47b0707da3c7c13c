"""Random walks of two edges through the scripts, held against the model step by step."""

import asyncio
import itertools
import os
import unittest
from typing import Any

import pytest
import uvloop
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.notifier.store.harness import APNS, NOW, NtfEdge, open_edge
from tests.notifier.store.model import MAY_SUBSCRIBE, Model, ModelServer, ModelSub, ModelToken
from tests.support.redis import SERVERS, client_of, discard, start_server
from weir.crypto.keys import generate
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.store.records import Fenced, Push, PushKind, Status, Subscription, Token
from weir.redis.embedded import Embedded
from weir.wire.address import ServerHost
from weir.wire.ntf.types import DeviceToken, SmpQueueNtf, SubError, SubStatus, TokenInvalid

EDGES = ("a", "b")
DEVICES = [DeviceToken(APNS, b"%032d" % n) for n in range(3)]
KEYS = [generate("ed25519") for _ in range(2)]
SECRETS = [generate() for _ in range(2)]
SERVERS_OF_TEST = [ServerHost((b"smp%d.example" % n,), b"", b"%032d" % n) for n in range(2)]
NOTIFIERS = [b"%024d" % n for n in range(6)]
SERVICE = b"s" * 24
OUTCOMES: dict[str, Outcome] = {
    "delivered": Delivered(),
    "failed": Failed(),
    "later": RetryLater(1000.0),
    "invalid": Invalid(),
}
REFUSALS: dict[str, SubStatus | SubError] = {
    "AUTH": SubStatus.AUTH,
    "SERVICE": SubStatus.SERVICE,
    "ERR": SubError(b"text"),
}

edges = st.sampled_from(EDGES)
places = st.integers(0, 5)
servers = st.sampled_from((0, 0, 1))


class Walk(RuleBasedStateMachine):
    """Each rule does a thing in the model and in the store, and compares the answers."""

    server: Embedded

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.model = Model()
        self.edges: dict[str, NtfEdge] = {}
        self.server_ids: list[bytes] = []
        self.epochs: dict[int, int] = {}
        self.old_epochs: list[tuple[int, int]] = []
        self.pushes: dict[bytes, Push] = {}  # under way, by token
        self.clock = itertools.count(NOW)

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    @initialize()
    def start(self) -> None:
        with client_of(self.server) as client:
            client.flushall()
        for name in EDGES:
            self.edges[name] = self.run(open_edge(self.server.url, lease=600.0, poll=600.0, claim=3600.0))
        for n, address in enumerate(SERVERS_OF_TEST):
            self.server_ids.append(self.run(self.edges["a"].store.servers.ensure(address)))
            self.model.servers[n] = ModelServer()
            self.own("a", n)
        # A walk that starts in the middle meets more.
        self.register("a", 0, 0, 0)
        self.verify("a", 0)
        for place in range(3):
            self.subscribe("b", 0, 0, place, 0)
        self.nsubs_answered(0)
        self.subscribed(0, True)

    def teardown(self) -> None:
        for edge in self.edges.values():
            self.run(edge.close())
        self.runner.close()

    def token_id(self, place: int) -> bytes:
        return list(self.model.tokens)[place % len(self.model.tokens)]

    def fetched(self, edge: str, token_id: bytes) -> Token:
        token = self.run(self.edges[edge].store.tokens.fetch(token_id))
        assert token is not None
        return token

    def sub_id(self, place: int) -> bytes:
        return list(self.model.subs)[place % len(self.model.subs)]

    def record(self, sub_id: bytes) -> Subscription:
        found = self.run(self.edges["a"].store.subscriptions.fetch(sub_id))
        assert found is not None
        sub: Subscription = found[0]
        return sub

    # Tokens

    @rule(edge=edges, device=st.integers(0, 2), key=st.integers(0, 1), secret=st.sampled_from((0, 0, 1)))
    def register(self, edge: str, device: int, key: int, secret: int) -> None:
        found = self.run(
            self.edges[edge].store.tokens.register(DEVICES[device], KEYS[key].spki, SECRETS[secret].public)
        )
        known = self.model.registration(device, key)
        if known is None:
            assert found.created
            self.model.tokens[found.token.id] = ModelToken(device, key, SECRETS[secret].public, code=found.token.code)
        elif self.model.tokens[known].secret != SECRETS[secret].public:
            assert found is None
        else:
            assert found is not None and not found.created and found.token.id == known
            self.model.register_again(known)

    @precondition(lambda self: self.model.tokens)
    @rule(edge=edges, place=places)
    def verify(self, edge: str, place: int) -> None:
        token_id = self.token_id(place)
        token = self.fetched(edge, token_id)
        assert self.run(self.edges[edge].store.tokens.activate(token, b"wrong")) is Status.AUTH
        status = self.run(self.edges[edge].store.tokens.activate(token, token.code))
        assert (status is Status.OK) == self.model.verify(token_id)
        self.forget_pushes()

    @precondition(lambda self: self.model.tokens)
    @rule(edge=edges, place=places, device=st.integers(0, 2))
    def replace(self, edge: str, place: int, device: int) -> None:
        token_id = self.token_id(place)
        status = self.run(self.edges[edge].store.tokens.replace(self.fetched(edge, token_id), DEVICES[device]))
        assert (status is Status.OK) == self.model.may_replace(token_id, device)
        if status is Status.OK:
            self.model.replace(token_id, device)
            self.pushes.pop(token_id, None)

    @precondition(lambda self: len(self.model.tokens) > 2)
    @rule(edge=edges, place=places)
    def delete(self, edge: str, place: int) -> None:
        token_id = self.token_id(place)
        token = self.fetched(edge, token_id)
        assert self.run(self.edges[edge].store.tokens.delete(token)) is Status.OK
        assert self.run(self.edges[edge].store.tokens.delete(token)) is Status.GONE
        self.model.delete(token_id)
        self.forget_pushes()

    def forget_pushes(self) -> None:
        """The outcome of a push for a token that is gone means nothing."""
        for token_id in [each for each in self.pushes if each not in self.model.tokens]:
            assert self.run(self.edges["a"].store.pushes.done(self.pushes.pop(token_id), Delivered())) is None

    # Subscriptions

    @precondition(lambda self: self.model.tokens)
    @rule(edge=edges, place=places, server=servers, notifier=places, key=st.sampled_from((0, 0, 0, 1)))
    def subscribe(self, edge: str, place: int, server: int, notifier: int, key: int) -> None:
        token_id = self.token_id(place)
        queue = SmpQueueNtf(SERVERS_OF_TEST[server], NOTIFIERS[notifier])
        known = self.model.find(server, queue.notifier_id)
        created = self.run(
            self.edges[edge].store.subscriptions.create(self.fetched(edge, token_id), queue, KEYS[key].pkcs8)
        )
        if known is None and self.model.tokens[token_id].status in MAY_SUBSCRIBE:
            assert created is not None and created.created and created.owned
            self.model.subs[created.subscription.id] = ModelSub(token_id, server, queue.notifier_id, key)
        elif known is not None and (self.model.subs[known].token, self.model.subs[known].key) == (token_id, key):
            assert created is not None and not created.created and created.subscription.id == known
        else:
            assert created is None

    @precondition(lambda self: self.model.subs)
    @rule(edge=edges, place=places)
    def unsubscribe(self, edge: str, place: int) -> None:
        sub_id = self.sub_id(place)
        sub = self.record(sub_id)
        assert self.run(self.edges[edge].store.subscriptions.delete(sub)) is Status.OK
        assert self.run(self.edges[edge].store.subscriptions.delete(sub)) is Status.GONE
        self.model.unsubscribe(sub_id)

    # The server's owner

    def owner(self, server: int) -> NtfEdge:
        owner = self.model.servers[server].owner
        assert owner is not None
        return self.edges[owner]

    @rule(edge=edges, server=servers)
    def own(self, edge: str, server: int) -> None:
        """The owner gives the server to an edge."""
        if self.model.servers[server].owner is not None:
            epoch = self.epochs[server]
            self.run(self.owner(server).store.servers.release(self.server_ids[server], epoch))
            self.old_epochs.append((server, epoch))
        self.epochs[server] = self.run(self.edges[edge].store.servers.own(self.server_ids[server]))
        self.model.servers[server].owner = edge
        self.model.new_session(server)

    @rule(server=servers)
    def disconnected(self, server: int) -> None:
        self.run(self.owner(server).store.servers.disconnected(self.server_ids[server], self.epochs[server]))
        self.model.new_session(server)

    @rule(server=servers)
    def nsubs_answered(self, server: int) -> None:
        self.run(self.owner(server).store.servers.session_up(self.server_ids[server], self.epochs[server]))
        self.model.servers[server].service_up = True

    @rule(server=servers)
    def walk_pending(self, server: int) -> None:
        found = self.run(self.owner(server).pending(self.server_ids[server], self.epochs[server], page=2))
        assert {sub.id for sub in found} == self.model.to_subscribe(server)

    @precondition(lambda self: self.model.subs)
    @rule(place=places, associated=st.booleans())
    def subscribed(self, place: int, associated: bool) -> None:
        sub_id = self.sub_id(place)
        server = self.model.subs[sub_id].server
        self.run(
            self.owner(server).store.servers.subscribed(
                self.server_ids[server], self.epochs[server], [self.record(sub_id)], SERVICE if associated else None
            )
        )
        self.model.subscribed(sub_id, associated)

    @precondition(lambda self: self.model.subs)
    @rule(place=places, status=st.sampled_from(sorted(REFUSALS)))
    def refused(self, place: int, status: str) -> None:
        sub_id = self.sub_id(place)
        server = self.model.subs[sub_id].server
        refusal = [(self.record(sub_id), REFUSALS[status])]
        self.run(self.owner(server).store.servers.errors(self.server_ids[server], self.epochs[server], refusal))
        self.model.refused(sub_id, status)

    @precondition(lambda self: self.model.subs)
    @rule(place=places, deleted=st.booleans())
    def ended(self, place: int, deleted: bool) -> None:
        sub_id = self.sub_id(place)
        server, notifier = self.model.subs[sub_id].server, self.model.subs[sub_id].notifier
        calls = self.owner(server).store.servers
        if deleted:
            assert self.run(self.edges["b"].store.servers.deleted(self.server_ids[server], notifier))
        else:
            assert self.run(calls.ended(self.server_ids[server], self.epochs[server], notifier))
        self.model.refused(sub_id, "DELETED" if deleted else "END")

    @rule(server=servers)
    def remove_service(self, server: int) -> None:
        removed = self.run(
            self.owner(server).store.servers.remove_service(self.server_ids[server], self.epochs[server])
        )
        assert removed == self.model.remove_service(server)

    @precondition(lambda self: self.old_epochs and self.model.subs)
    @rule(edge=edges, at=places, place=places)
    def fenced(self, edge: str, at: int, place: int) -> None:
        server, epoch = self.old_epochs[at % len(self.old_epochs)]
        calls, server_id = self.edges[edge].store.servers, self.server_ids[server]
        sub = self.record(self.sub_id(place))
        for call in (
            calls.disconnected(server_id, epoch),
            calls.subscribed(server_id, epoch, [sub], SERVICE),
            calls.errors(server_id, epoch, [(sub, SubStatus.AUTH)]),
        ):
            try:
                self.run(call)
            except Fenced:
                continue
            raise AssertionError("a fenced epoch changed something")

    # Notifications and pushes

    @precondition(lambda self: self.model.subs)
    @rule(edge=edges, place=places, room=st.booleans())
    def received(self, edge: str, place: int, room: bool) -> None:
        sub_id = self.sub_id(place)
        sub = self.model.subs[sub_id]
        nonce = os.urandom(24)
        answer = self.run(
            self.edges[edge].store.notifications.received(
                self.server_ids[sub.server], sub.notifier, nonce, b"meta", next(self.clock), (APNS,) if room else ()
            )
        )
        if not self.model.received(sub_id, nonce):
            assert answer == (Status.AUTH, None)
            return
        token = self.model.tokens[sub.token]
        claimed = self.model.claim(sub.token) if room and not token.waits else None
        assert answer.status is Status.OK
        self.compare_push(sub.token, claimed, answer.push)

    @precondition(lambda self: self.model.tokens)
    @rule(edge=edges, place=places)
    def claim(self, edge: str, place: int) -> None:
        token_id = self.token_id(place)
        push = self.run(self.edges[edge].store.pushes.claim(self.fetched(edge, token_id)))
        self.compare_push(token_id, self.model.claim(token_id), push)

    @rule(edge=edges)
    def due(self, edge: str) -> None:
        """What waits. Retries wait longer than this walk lasts."""
        partitions = {self.edges[edge].store.partition(token_id) for token_id in self.model.tokens}
        found = {
            push.token.id: push
            for p in partitions
            for push in self.run(self.edges[edge].store.pushes.due(p, {APNS: 100}))
        }
        for token_id, token in self.model.tokens.items():
            claimed = None if token.waits else self.model.claim(token_id)
            self.compare_push(token_id, claimed, found.pop(token_id, None))
        assert not found

    @precondition(lambda self: self.pushes)
    @rule(edge=edges, place=places, outcome=st.sampled_from(("delivered", "delivered", "failed", "later", "invalid")))
    def done(self, edge: str, place: int, outcome: str) -> None:
        token_id = list(self.pushes)[place % len(self.pushes)]
        push = self.pushes.pop(token_id)
        following = self.run(self.edges[edge].store.pushes.done(push, OUTCOMES[outcome]))
        self.compare_push(token_id, self.model.done(token_id, push.kind.name, outcome), following)

    def compare_push(self, token_id: bytes, kind: str | None, push: Push | None) -> None:
        assert (None if push is None else push.kind.name) == kind
        if push is None:
            return
        token = self.model.tokens[token_id]
        assert push.token.id == token_id and push.token.device == DEVICES[token.device]
        if push.kind is PushKind.MESSAGES:
            assert [message.nonce for message in push.messages] == [nonce for _, nonce in token.last]
        self.pushes[token_id] = push

    # What must always be

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        if self.edges:
            self.run(self._compare())

    async def _compare(self) -> None:
        store = self.edges["a"].store
        for server, server_id in enumerate(self.server_ids):
            totals = await store.servers.totals(server_id)
            assert (totals.count, totals.ids_hash, totals.pending) == self.model.totals(server)
        for token_id, token in self.model.tokens.items():
            found = await store.tokens.fetch(token_id)
            assert found is not None
            status = "INVALID" if isinstance(found.status, TokenInvalid) else found.status.name
            assert (found.device, status) == (DEVICES[token.device], token.status)
        for sub_id in self.model.subs:
            both = await store.subscriptions.fetch(sub_id)
            assert both is not None
            seen = both[0].status
            expected = self.model.status(sub_id)
            assert ("ERR" if isinstance(seen, SubError) else seen.name) == expected
            assert both[0].associated == self.model.subs[sub_id].associated
        counts = await store.stats.counts()
        assert (counts["tokens"], counts["subscriptions"]) == (len(self.model.tokens), len(self.model.subs))


def _walk_on(kind: str, walks: int) -> Any:
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


TestWalkOnValkey = _walk_on("valkey", 15)
_elsewhere = pytest.mark.all("another kind of Redis")
TestWalkOnRedis6 = _elsewhere(_walk_on("redis6", 10))
TestManyWalksOnValkey = pytest.mark.all("more of the same")(_walk_on("valkey", 60))
