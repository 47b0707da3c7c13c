"""PFWD: one router forwards to another, which does not know for whom."""

import asyncio
import os
from dataclasses import replace
from hashlib import sha3_384

import pytest

from tests.router.fleet import Fleet, Queue
from tests.router.proxied import Proxied, SilentRelay, broker
from weir.crypto.keys import generate
from weir.router.config import RouterConfig
from weir.wire.errors import BrokerErrorTag, ProxyBroker, ProxyErrorTag, ProxyProtocol, Simple
from weir.wire.errors import Proxy as ProxyError
from weir.wire.smp import commands as cmd
from weir.wire.smp.commands import LinkData, MessagingReq
from weir.wire.smp.replies import ERR, LNK, OK
from weir.wire.versions import VersionRange, max_message_length


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
async def test_the_client_version_decides_inside(fleet: Fleet, relay: Fleet, relay_queue: Queue, version: int) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    body = b"-" * max_message_length(version)
    assert await proxied.do(cmd.SEND(False, body), relay_queue.snd_id, version=version) == OK()


async def test_what_cannot_be_decrypted(fleet: Fleet, relay: Fleet) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    forward = cmd.PFWD(19, generate("x25519").public, os.urandom(16242))
    reply = await proxied.peer.do(forward, proxied.relay.session_id)
    assert reply == ERR(ProxyError(ProxyProtocol(Simple.CRYPTO)))


async def test_no_session(fleet: Fleet) -> None:
    peer = await fleet.client()
    reply = await peer.do(cmd.PFWD(19, generate("x25519").public, os.urandom(100)), os.urandom(32))
    assert reply == ERR(ProxyError(ProxyErrorTag.NO_SESSION))


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


async def test_large_messages_do_not_break_the_proxy(fleet: Fleet, relay: Fleet, relay_queue: Queue) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    too_large = b"-" * (max_message_length(19) + 1)
    assert await proxied.do(cmd.SEND(False, too_large), relay_queue.snd_id) == ERR(Simple.LARGE_MSG)
    assert await proxied.do(cmd.SEND(False, b"1"), relay_queue.snd_id) == OK()
