"""PRXY: a session with a relay, for clients that may have one."""

import asyncio
import os
from dataclasses import replace

from tests.router.fleet import Fleet, Queue
from tests.router.proxied import Proxied, broker, server_host
from weir.router.config import Auth, Proxy, RouterConfig
from weir.transport.server import bind
from weir.wire.errors import BrokerErrorTag, ProxyErrorTag
from weir.wire.errors import Proxy as ProxyError
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import ERR, OK, PKEY


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


async def test_a_relay_that_comes_back(fleet: Fleet, relay: Fleet, relay_queue: Queue) -> None:
    peer = await fleet.client()
    proxied = await Proxied.connect(peer, relay.address())
    for client in list(relay[0].router.clients.values()):
        if client.conn.proxy:
            client.conn.abort()
    while fleet[0].router.relays.session(proxied.relay.session_id) is not None:
        await asyncio.sleep(0.01)
    assert await proxied.do(cmd.SEND(False, b"1"), relay_queue.snd_id) == ERR(ProxyError(ProxyErrorTag.NO_SESSION))
    again = await Proxied.connect(peer, relay.address())
    assert again.relay.session_id != proxied.relay.session_id
    assert await again.do(cmd.SEND(False, b"1"), relay_queue.snd_id) == OK()
    assert len(fleet[0].router.relays) == 1, "nothing of the old session is left"
