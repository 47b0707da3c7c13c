"""PRXY, PFWD and RFWD: one router forwards to another, which does not know for whom."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha3_384
from typing import NamedTuple

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.certificates import certificate_key
from weir.crypto.keys import KeyPair, dh, generate
from weir.crypto.session_key import verify_session_key
from weir.router.config import Auth, Proxy, RouterConfig
from weir.transport.server import TransportConfig, bind, serve
from weir.transport.smp import SMP, SmpConnection
from weir.wire.address import ServerHost, SmpAddress
from weir.wire.errors import BrokerErrorTag, CommandError, ProxyBroker, ProxyErrorTag, ProxyProtocol, Simple
from weir.wire.errors import Proxy as ProxyError
from weir.wire.smp import commands as cmd
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import Command, LinkData, MessagingReq
from weir.wire.smp.forward import open_response, seal_transmission
from weir.wire.smp.replies import ERR, LNK, OK, PKEY, PRES
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import decode_replies, encode_client, for_auth, pack
from weir.wire.versions import VersionRange, max_message_length


def broker(error: object) -> ERR:
    return ERR(ProxyError(ProxyBroker(error)))  # type: ignore[arg-type]


def server_host(address: str) -> ServerHost:
    parsed = SmpAddress.parse(address)
    assert parsed is not None
    return parsed.server_host


class Proxied(NamedTuple):
    """A sender behind a proxy."""

    peer: Peer
    relay: PKEY
    relay_key: bytes  # X25519, raw public

    @staticmethod
    async def connect(peer: Peer, address: str, auth: bytes | None = None) -> "Proxied":
        reply = await peer.do(cmd.PRXY(server_host(address), auth))
        assert isinstance(reply, PKEY), reply
        signer = certificate_key(reply.cert_key.chain[0])
        assert signer is not None
        key = verify_session_key(signer, reply.cert_key.signed_key)
        assert key is not None and key[0] == "x25519"
        return Proxied(peer, reply, key[1])

    async def do(
        self,
        command: Command | list[tuple[Command, bytes, KeyPair | None]],
        entity_id: bytes = b"",
        key: KeyPair | None = None,
        *,
        version: int | None = None,
    ) -> object:
        session = Session(self.relay.session_id, version or self.relay.versions.max)
        commands = command if isinstance(command, list) else [(command, entity_id, key)]
        encoded = []
        corr_id = os.urandom(24)
        for one, entity, signing in commands:
            authorized, sent = for_auth(session, corr_id, entity, encode_command(session.version, one))
            auth = b""
            if signing is not None and signing.type == "x25519":
                auth = authenticate(dh(self.relay_key, signing.private), corr_id, authorized)
            elif signing is not None:
                auth = sign(signing.type, signing.private, authorized)
            encoded.append(encode_client(session, sent, auth, None))
        own = generate("x25519")
        secret = dh(self.relay_key, own.private)
        box = seal_transmission(secret, corr_id, pack(encoded)[0])
        reply = await self.peer.do(
            cmd.PFWD(session.version, own.public, box), self.relay.session_id, corr_id=corr_id, timeout=20
        )
        if not isinstance(reply, PRES):
            return reply
        content = open_response(secret, corr_id, reply.response)
        assert content is not None
        (inner,) = decode_replies(session, content)
        assert inner.corr_id == corr_id
        return inner.reply


@pytest.fixture
async def relay(config: RouterConfig) -> AsyncIterator[Fleet]:
    """Another router (the same Redis does: a proxy knows nothing of a relay but its address)."""
    fleet = Fleet(config)
    await fleet.add()
    yield fleet
    await fleet.close()


@pytest.fixture
async def queue(relay: Fleet) -> Queue:
    return await (await relay.client()).new("ed25519")


async def test_a_message_through_a_proxy(fleet: Fleet, relay: Fleet) -> None:
    r = await relay.client()
    for key_type in ("x25519", "ed25519", "ed448"):
        queue = await r.new("ed25519")
        proxied = await Proxied.connect(await fleet.client(), relay.address())
        assert proxied.relay.versions == VersionRange(8, 19)
        key = generate(key_type)  # type: ignore[arg-type]
        assert await proxied.do(cmd.SEND(False, b"unsigned"), queue.snd_id) == OK()
        assert await r.text(queue) == b"unsigned"
        assert await proxied.do(cmd.SKEY(key.spki), queue.snd_id, key) == OK()
        largest = b"-" * max_message_length(19)
        assert await proxied.do(cmd.SEND(False, largest), queue.snd_id, key) == OK()
        assert await r.text(queue) == largest
        assert await proxied.do(cmd.SEND(False, b"1"), queue.snd_id) == ERR(Simple.AUTH)
    assert relay[0].router.stats.pMsgFwdsRecv == 12
    assert fleet[0].router.stats.pMsgFwds.pSuccesses == 12
    assert len(fleet[0].router.relays) == 1, "one session for all clients"


async def test_links_through_a_proxy(fleet: Fleet, relay: Fleet) -> None:
    r = await relay.client()
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    link_id, corr_id = os.urandom(24), os.urandom(24)
    snd_id = sha3_384(corr_id).digest()[:24]
    data = LinkData(b"fixed", b"user")
    key, dh_key = generate("ed25519"), generate("x25519")
    request = MessagingReq((snd_id, data))
    ids = await r.do(cmd.NEW(key.spki, dh_key.public, queue_req=request), b"", key, corr_id=corr_id)
    snd_key = generate("ed25519")
    assert await proxied.do(cmd.LKEY(snd_key.spki), ids.link_id, snd_key) == LNK(snd_id, data)  # type: ignore[union-attr]
    assert await proxied.do(cmd.LGET(), link_id) == ERR(Simple.AUTH)


@pytest.mark.parametrize("version", [8, 11, 18])
async def test_the_client_version_decides_inside(fleet: Fleet, relay: Fleet, queue: Queue, version: int) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    body = b"-" * max_message_length(version)
    assert await proxied.do(cmd.SEND(False, body), queue.snd_id, version=version) == OK()


async def test_only_what_a_sender_needs(fleet: Fleet, relay: Fleet, queue: Queue) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    for command in (cmd.SUB(), cmd.DEL(), cmd.GET(), cmd.NSUB()):
        assert await proxied.do(command, queue.rcv_id, queue.rcv_key) == ERR(CommandError.PROHIBITED)
    assert await proxied.do(cmd.PING()) == ERR(CommandError.PROHIBITED)
    twice = [(cmd.SEND(False, b"1"), queue.snd_id, None)] * 2
    reply = await proxied.do(twice)  # type: ignore[arg-type]
    assert reply == ERR(ProxyError(ProxyProtocol(Simple.BLOCK))), "single transmissions only"


async def test_what_cannot_be_decrypted(fleet: Fleet, relay: Fleet) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    forward = cmd.PFWD(19, generate("x25519").public, os.urandom(16242))
    reply = await proxied.peer.do(forward, proxied.relay.session_id)
    assert reply == ERR(ProxyError(ProxyProtocol(Simple.CRYPTO)))


async def test_rfwd_that_is_no_proxy(relay: Fleet) -> None:
    """Anybody may send RFWD; only the right box opens it."""
    peer = await relay.client()
    assert await peer.do(cmd.RFWD(os.urandom(100))) == err(Simple.CRYPTO)


async def test_no_session(fleet: Fleet) -> None:
    peer = await fleet.client()
    reply = await peer.do(cmd.PFWD(19, generate("x25519").public, os.urandom(100)), os.urandom(32))
    assert reply == ERR(ProxyError(ProxyErrorTag.NO_SESSION))


async def test_basic_auth(fleet: Fleet, relay: Fleet) -> None:
    await fleet.add(auth=Auth(create_password="secret"))
    await fleet.add(proxy=Proxy(enable=False))
    refused = ERR(ProxyError(ProxyErrorTag.BASIC_AUTH))
    host = server_host(relay.address())
    peer = await fleet.client(2)
    assert await peer.do(cmd.PRXY(host, None)) == refused
    assert await peer.do(cmd.PRXY(host, b"other")) == refused
    assert isinstance(await peer.do(cmd.PRXY(host, b"secret")), PKEY)
    assert await (await fleet.client(3)).do(cmd.PRXY(host, None)) == refused


async def test_addresses(fleet: Fleet, relay: Fleet, config: RouterConfig) -> None:
    peer = await fleet.client()
    host = server_host(relay.address())
    wrong_identity = host._replace(key_hash=os.urandom(32))
    reply = await peer.do(cmd.PRXY(wrong_identity, None))
    assert isinstance(reply, ERR) and isinstance(reply.error, ProxyError), reply
    onion = host._replace(hosts=(b"abcdefgh.onion",))
    assert await peer.do(cmd.PRXY(onion, None)) == broker(BrokerErrorTag.HOST)
    with bind("127.0.0.1", 0) as closed:
        port = b"%d" % closed.getsockname()[1]
    assert await peer.do(cmd.PRXY(host._replace(port=port), None)) == broker(BrokerErrorTag.NETWORK)
    await fleet.add(proxy=replace(config.proxy, allow_local_relays=False))
    guarded = await fleet.client(2)
    for local in (b"127.0.0.1", b"localhost", b"10.0.0.1", b"169.254.1.1", b"::1"):
        reply = await guarded.do(cmd.PRXY(host._replace(hosts=(local,)), None))
        assert reply == broker(BrokerErrorTag.HOST), local


async def test_a_failed_relay_is_not_tried_again_at_once(fleet: Fleet, relay: Fleet) -> None:
    peer = await fleet.client()
    host = server_host(relay.address())
    with bind("127.0.0.1", 0) as closed:
        host = host._replace(port=b"%d" % closed.getsockname()[1])
    failed = broker(BrokerErrorTag.NETWORK)
    assert await peer.do(cmd.PRXY(host, None)) == failed
    assert await peer.do(cmd.PRXY(host, None)) == failed
    relays = fleet[0].router.relays
    assert len(relays) == 0 and list(relays._failed) == [host]


async def test_a_relay_that_comes_back(fleet: Fleet, relay: Fleet, queue: Queue) -> None:
    peer = await fleet.client()
    proxied = await Proxied.connect(peer, relay.address())
    for client in list(relay[0].router.clients.values()):
        if client.conn.proxy:
            client.conn.abort()
    while fleet[0].router.relays.session(proxied.relay.session_id) is not None:
        await asyncio.sleep(0.01)
    assert await proxied.do(cmd.SEND(False, b"1"), queue.snd_id) == ERR(ProxyError(ProxyErrorTag.NO_SESSION))
    again = await Proxied.connect(peer, relay.address())
    assert again.relay.session_id != proxied.relay.session_id
    assert await again.do(cmd.SEND(False, b"1"), queue.snd_id) == OK()
    assert len(fleet[0].router.relays) == 1, "nothing of the old session is left"


class SilentRelay:
    """Shakes hands and then says nothing, or something else."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer
        self.blocks = 0

    async def listen(self, config: RouterConfig) -> str:
        identity = SMP.identity(config.transport.identity)
        self.listener = await serve(SMP, TransportConfig(), identity, self.on_session, host="127.0.0.1")
        return str(SmpAddress(identity.fingerprint, ("127.0.0.1",), self.listener.ports[0]))

    def on_session(self, connection: SmpConnection) -> "SilentRelay":
        self.connection = connection
        return self

    def on_blocks(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self.on_block(self.connection.open(block))

    def on_block(self, content: bytes) -> None:
        self.blocks += 1
        self.last = content
        if self.answer is not None:
            command_at = content.index(b"RFWD")
            corr_id = content[command_at - 25 : command_at - 1]
            t = b"\0" + bytes((len(corr_id),)) + corr_id + b"\0" + self.answer
            self.connection.send_contents([b"\1" + len(t).to_bytes(2, "big") + t])

    def on_writable(self) -> None: ...

    def on_closed(self) -> None: ...


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, broker(BrokerErrorTag.TIMEOUT)),
        (b"ERR AUTH", ERR(ProxyError(ProxyProtocol(Simple.AUTH)))),
        (b"PONG", None),
        (b"NONSENSE", None),
        (b"RRES " + bytes(100), ERR(Simple.CRYPTO)),
    ],
)
async def test_relays_that_time_out_or_lie(
    fleet: Fleet, config: RouterConfig, answer: bytes | None, expected: ERR | None
) -> None:
    silent = SilentRelay(answer)
    address = await silent.listen(config)
    await fleet.add(proxy=replace(config.proxy, request_timeout=0.3))
    proxied = await Proxied.connect(await fleet.client(2), address)
    reply = await proxied.do(cmd.SEND(False, b"1"), os.urandom(24))
    if expected is None:
        assert isinstance(reply, ERR) and isinstance(reply.error, ProxyError)
        assert isinstance(reply.error.error, ProxyBroker)
    else:
        assert reply == expected
    assert silent.blocks == 1
    relay = fleet[2].router.relays.session(proxied.relay.session_id)
    assert relay is not None and relay.waiting == 0
    await silent.listener.close()


async def test_forwards_are_counted_and_wait_their_turn(fleet: Fleet, config: RouterConfig) -> None:
    """Above the limit a forward waits, and is told when it waits too long; the connection itself stays free."""
    silent = SilentRelay(None)
    address = await silent.listen(config)
    limits = replace(config.proxy, request_timeout=1.0, client_concurrency=2, client_wait=0.2)
    await fleet.add(proxy=limits)
    proxied = await Proxied.connect(await fleet.client(2), address)
    forwards = [asyncio.create_task(proxied.do(cmd.SEND(False, b"1"), os.urandom(24))) for _ in range(4)]
    await asyncio.sleep(0.1)
    assert silent.blocks == 2
    assert fleet[2].gauges()["forwards"] == 2
    await proxied.peer.smp.ping()
    assert await asyncio.gather(*forwards) == [broker(BrokerErrorTag.TIMEOUT)] * 4
    assert silent.blocks == 2
    await silent.listener.close()


async def test_a_client_with_many_forwards_waiting_is_not_read_from(fleet: Fleet, config: RouterConfig) -> None:
    """Each forwarded command has 16 KB: the number that waits is bounded, and every one of them is answered."""
    silent = SilentRelay(b"ERR AUTH")
    address = await silent.listen(config)
    await fleet.add(proxy=replace(config.proxy, client_concurrency=1))
    proxied = await Proxied.connect(await fleet.client(2), address)
    (client,) = fleet[2].router.clients.values()
    answer, silent.answer = silent.answer, None  # the first has the only turn
    forwards = [asyncio.create_task(proxied.do(cmd.SEND(False, bytes(15000)), os.urandom(24))) for _ in range(60)]
    while not (client.incoming.paused and silent.blocks):
        await asyncio.sleep(0.01)
    assert client.forwarding + client.incoming.in_progress <= 2 + 2 * 8
    assert len(client.incoming.blocks) <= 32, "what one read brought"
    assert silent.blocks == 1
    silent.answer = answer
    silent.on_block(silent.last)
    assert await asyncio.gather(*forwards) == [ERR(ProxyError(ProxyProtocol(Simple.AUTH)))] * 60
    assert client.forwarding == 0 and client.incoming.in_progress == 0
    await silent.listener.close()


async def test_large_messages_do_not_break_the_proxy(fleet: Fleet, relay: Fleet, queue: Queue) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    too_large = b"-" * (max_message_length(19) + 1)
    assert await proxied.do(cmd.SEND(False, too_large), queue.snd_id) == ERR(Simple.LARGE_MSG)
    assert await proxied.do(cmd.SEND(False, b"1"), queue.snd_id) == OK()
