"""Services for the tests: credentials, service sessions, folds as lists, and what Redis holds about a service."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.router.fleet import LIMIT, Fleet, Peer, Queue
from tests.router.store.default_keys import keys
from weir.client.smp import Answer, Request
from weir.crypto.authenticator import sign
from weir.crypto.certificates import Issued, make_ca, make_online, make_self_signed
from weir.crypto.keys import KeyPair, dh, generate
from weir.redis.partitions import PARTITIONS
from weir.router.edge import Edge
from weir.transport.server import bind
from weir.transport.smp import ServiceCredentials
from weir.wire.smp import commands as cmd
from weir.wire.smp import ids_hash
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import Command, ServiceRole
from weir.wire.smp.replies import ALLS, IDS, MSG, NID, OK, SOKS
from weir.wire.smp.transmission import ServerTransmission, encode_client, for_auth


def self_signed(role: ServiceRole = ServiceRole.MESSAGING) -> ServiceCredentials:
    return ServiceCredentials.self_signed(role, make_self_signed())


def under(identity: Issued, role: ServiceRole = ServiceRole.MESSAGING) -> ServiceCredentials:
    """A fresh leaf certificate under a service's identity certificate."""
    leaf = make_online(identity, "service", "ed25519", client=True)
    return ServiceCredentials(role, (leaf.certificate, identity.certificate), leaf.key)


def new_identity() -> Issued:
    return make_ca("ed25519", "a service")


@dataclass
class Notifier:
    """A queue's notifier, as the notification server knows it."""

    ntf_id: bytes
    key: KeyPair


@dataclass
class Service:
    """A service as it knows itself: its credentials, and the ids of its queues (or notifiers)."""

    credentials: ServiceCredentials = field(default_factory=self_signed)
    ids: set[bytes] = field(default_factory=set)

    @classmethod
    def notifier(cls) -> Service:
        return cls(self_signed(ServiceRole.NOTIFIER))

    @property
    def role(self) -> ServiceRole:
        return self.credentials.role

    @property
    def totals(self) -> tuple[int, bytes]:
        return len(self.ids), ids_hash.of_ids(self.ids)

    async def connect(self, fleet: Fleet, edge: int = 0, **options: Any) -> Session:
        peer = await fleet.client(edge, service=self.credentials, **options)
        return Session(peer.smp, self)


@dataclass
class Session(Peer):
    """A service's connection."""

    service: Service

    @property
    def service_id(self) -> bytes:
        service_id = self.smp.service_id
        assert service_id is not None
        return service_id

    @property
    def key(self) -> KeyPair:
        """The session's own service key."""
        service = self.smp.connection.service
        assert service is not None
        return service.key_pair

    async def subs(self, expected: tuple[int, bytes] | None = None) -> Answer:
        """SUBS (or NSUBS) with what the service believes."""
        kind = cmd.SUBS if self.service.role is ServiceRole.MESSAGING else cmd.NSUBS
        return await self.do(kind(*(expected or self.service.totals)), self.service_id, self.key)

    async def resume(self) -> list[ServerTransmission]:
        """SUBS, SOKS with the exact totals, and all messages up to ALLS."""
        assert await self.subs() == SOKS(*self.service.totals)
        return await self.fold()

    async def fold(self, limit: float = LIMIT) -> list[ServerTransmission]:
        """Everything until ALLS."""
        events: list[ServerTransmission] = []
        async with asyncio.timeout(limit):
            while True:
                event = await self.smp.events.get()
                if event.reply == ALLS():
                    return events
                events.append(event)

    async def create(self, **options: Any) -> Queue:
        """A queue of the service's own, made with NEW."""
        queue = await self.new(**options)
        self.service.ids.add(queue.rcv_id)
        return queue

    async def join(self, queue: Queue) -> Answer:
        """SUB: the queue is the service's from now on."""
        answer = await self.sub(queue)
        self.service.ids.add(queue.rcv_id)
        return answer

    async def nsub(self, notifier: Notifier) -> Answer:
        answer = await self.do(cmd.NSUB(), notifier.ntf_id, notifier.key)
        self.service.ids.add(notifier.ntf_id)
        return answer

    async def ack_all(self, queue: Queue, first: MSG) -> list[bytes]:
        """Acknowledges a message and those that follow it; all of their bodies."""
        bodies = []
        reply: Answer = first
        while isinstance(reply, MSG):
            body = queue.open(reply)
            assert body is not None
            bodies.append(getattr(body, "body", b"quota"))
            reply = await self.ack(queue, reply.msg_id)
        assert reply == OK(), reply
        return bodies


async def authorize(
    peer: Peer,
    command: Command,
    entity_id: bytes,
    key: KeyPair,
    *,
    signed: KeyPair | None,
    bound: bool = True,
) -> Answer:
    """A command with the service signature of the test's choosing; `bound`: the key also authorises the certificate."""
    smp = peer.smp
    corr_id = os.urandom(24)
    authorized, sent = for_auth(smp.session, corr_id, entity_id, encode_command(smp.session.version, command))
    signature = None if signed is None else sign("ed25519", signed.private, authorized)
    service = smp.connection.service
    if signed is not None and bound and service is not None:
        authorized = service.cert_hash + authorized
    reply: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    auth = smp._authorize(key, corr_id, authorized)
    smp.submit_encoded(encode_client(smp.session, sent, auth, signature), corr_id, reply.set_result)
    async with asyncio.timeout(LIMIT):
        return await reply


async def add_notifier(recipient: Peer, queue: Queue) -> Notifier:
    key, dh_key = generate("x25519"), generate("x25519")
    reply = await recipient.do(cmd.NKEY(key.spki, dh_key.public), queue.rcv_id, queue.rcv_key)
    assert isinstance(reply, NID), reply
    return Notifier(reply.ntf_id, key)


async def make_queues(session: Session, count: int) -> list[Queue]:
    """Many queues of a service at once."""
    secrets = [(generate("x25519"), generate("x25519")) for _ in range(count)]
    replies = await session.smp.send_many(
        [
            Request(cmd.NEW(key.spki, dh_key.public, subscribe=True, queue_req=cmd.MessagingReq()), b"", key)
            for key, dh_key in secrets
        ],
        timeout=30,
    )
    queues = []
    for (key, dh_key), reply in zip(secrets, replies, strict=True):
        assert isinstance(reply, IDS), reply
        queues.append(Queue(reply, key, dh(reply.dh_key, dh_key.private)))
        session.service.ids.add(reply.rcv_id)
    return queues


def messages(events: Iterable[ServerTransmission]) -> dict[bytes, MSG]:
    """Messages by queue; no queue may have two."""
    found: dict[bytes, MSG] = {}
    for event in events:
        assert isinstance(event.reply, MSG), event
        assert event.entity_id not in found, "two messages of one queue without an ACK between them"
        found[event.entity_id] = event.reply
    return found


def text(queue: Queue, message: MSG) -> bytes:
    body = queue.open(message)
    assert body is not None
    return getattr(body, "body", b"quota")


async def stored_ids(edge: Edge, service_id: bytes) -> set[bytes]:
    """The service's ids as the sets in Redis have them."""
    store = edge.store
    shares = await asyncio.gather(
        *(store.core.ask(p, b"SMEMBERS", keys.service_queues(p, service_id)) for p in range(PARTITIONS))
    )
    return {entity_id for share in shares for entity_id in share}


async def ready_ids(edge: Edge, service_id: bytes) -> set[bytes]:
    store = edge.store
    shares = await asyncio.gather(
        *(store.core.ask(p, b"SMEMBERS", keys.service_ready(p, service_id)) for p in range(PARTITIONS))
    )
    return {entity_id for share in shares for entity_id in share}


async def owners(edge: Edge, service_id: bytes) -> set[bytes | None]:
    """The owners of the service, over all partitions."""
    store = edge.store
    found = await asyncio.gather(
        *(store.core.ask(p, b"HGET", keys.service(p, service_id), b"o") for p in range(PARTITIONS))
    )
    return set(found)


async def assert_exact(edge: Edge, service_id: bytes, ids: Iterable[bytes]) -> None:
    """Count and hash in Redis are those of exactly these ids, in each partition and in all."""
    ids = set(ids)
    store = edge.store
    assert await stored_ids(edge, service_id) == ids
    totals = await store.services.service_totals(service_id)
    assert (totals.count, totals.ids_hash) == (len(ids), ids_hash.of_ids(ids))
    for p in range(PARTITIONS):
        count, total = await store.core.ask(p, b"HMGET", keys.service(p, service_id), b"c", b"h")
        share = [entity_id for entity_id in ids if store.partition(entity_id) == p]
        assert (int(count or 0), total or ids_hash.EMPTY) == (len(share), ids_hash.of_ids(share))


async def fleet_stats(fleet: Fleet) -> dict[str, int]:
    """The fleet's counters, everything counted so far included."""
    for edge in fleet.edges:
        await edge.save()
    return dict(await fleet[0].store.stats.read_stats())


async def drift_of(fleet: Fleet, service_id: bytes) -> dict[str, int]:
    info = await fleet[0].store.registry.get_service(service_id)
    assert info is not None
    return dict(info.drift)


def narrow_socket() -> socket.socket:
    """A listening socket whose connections keep little in the kernel, so that a client that does not read is felt."""
    sock = bind("127.0.0.1", 0)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
    return sock


async def narrow_edge(fleet: Fleet, **changes: Any) -> int:
    """One more edge, with small buffers for each client; its index."""
    transport = replace(fleet.config.transport, outgoing_bytes=64 << 10, outgoing_low_bytes=16 << 10)
    edge = await Edge.start(replace(fleet.config, transport=transport, **changes), socks=[narrow_socket()])
    fleet.edges.append(edge)
    return len(fleet.edges) - 1


def stop_reading(peer: Peer) -> None:
    """The client takes nothing any more from its socket, which is small."""
    transport = peer.smp.connection._transport
    assert transport is not None
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)
    peer.smp.connection.pause_reading()


def read_again(peer: Peer) -> None:
    peer.smp.connection.resume_reading()


async def until(condition: Callable[[], bool], limit: float = LIMIT) -> None:
    """For what happens inside an edge and has no event of its own."""
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.005)
