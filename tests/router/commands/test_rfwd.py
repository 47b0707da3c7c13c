"""RFWD as a relay sees it: every layer that can be wrong (the whole way is in test_pfwd)."""

import os

import pytest

from tests.router.fleet import Fleet, Peer, Queue, err
from tests.router.proxied import Proxied
from weir.crypto.boxes import cb_encrypt_no_pad
from weir.crypto.keys import dh, generate
from weir.wire.errors import CommandError, ErrorType, ProxyProtocol, Simple
from weir.wire.errors import Proxy as ProxyError
from weir.wire.smp import commands as cmd
from weir.wire.smp.forward import (
    FwdTransmission,
    encode_fwd_transmission,
    open_forward_response,
    open_response,
    seal_transmission,
)
from weir.wire.smp.replies import ERR, RRES
from weir.wire.smp.session import Session
from weir.wire.smp.transmission import decode_replies


async def forward(peer: Peer, content: bytes, *, version: int = 19) -> object:
    """A proxy's RFWD with this content inside: the relay's answer, opened as far as it goes."""
    connection = peer.smp.connection
    secret, server_key = connection.session_secret, connection.server_key
    assert secret is not None and server_key is not None
    own, inner_corr_id, corr_id = generate("x25519"), os.urandom(24), os.urandom(24)
    inner_secret = dh(server_key, own.private)
    box = seal_transmission(inner_secret, inner_corr_id, content)
    plain = encode_fwd_transmission(FwdTransmission(inner_corr_id, version, own.public, box))
    reply = await peer.do(cmd.RFWD(cb_encrypt_no_pad(secret, corr_id, plain)), corr_id=corr_id)
    if not isinstance(reply, RRES):
        return reply
    opened = open_forward_response(secret, corr_id, reply.response)
    assert opened is not None and opened.corr_id == inner_corr_id
    inner = open_response(inner_secret, inner_corr_id, opened.response)
    assert inner is not None
    return decode_replies(Session(connection.session.session_id, version), inner)[0].reply


def transmission(command: bytes, entity_id: bytes = b"") -> bytes:
    t = b"\0" + bytes((24,)) + os.urandom(24) + bytes((len(entity_id),)) + entity_id + command
    return b"\1" + len(t).to_bytes(2, "big") + t


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (transmission(b"SEND F hello", bytes(24)), Simple.AUTH),
        (transmission(b"SEND", bytes(24)), CommandError.SYNTAX),
        (transmission(b"HELLO"), CommandError.UNKNOWN),
        (transmission(b"SEND F hello"), CommandError.NO_ENTITY),
        (transmission(b"PING"), CommandError.PROHIBITED),
        (transmission(b"LGET", bytes(24)), Simple.AUTH),
    ],
)
async def test_errors_inside_are_told_inside(fleet: Fleet, content: bytes, error: ErrorType) -> None:
    peer = await fleet.client(0, proxy=True)
    assert await forward(peer, content) == ERR(error)


async def test_errors_of_the_wrapping_are_told_outside(fleet: Fleet) -> None:
    peer = await fleet.client(0, proxy=True)
    connection = peer.smp.connection
    secret = connection.session_secret
    assert secret is not None
    corr_id = os.urandom(24)
    assert await peer.do(cmd.RFWD(os.urandom(200)), corr_id=corr_id) == err(Simple.CRYPTO)
    nonsense = cb_encrypt_no_pad(secret, corr_id, b"\xff")
    assert await peer.do(cmd.RFWD(nonsense), corr_id=corr_id) == err(CommandError.SYNTAX)
    sealed = encode_fwd_transmission(FwdTransmission(os.urandom(24), 19, generate("x25519").public, os.urandom(300)))
    corr_id = os.urandom(24)
    reply = await peer.do(cmd.RFWD(cb_encrypt_no_pad(secret, corr_id, sealed)), corr_id=corr_id)
    assert reply == err(Simple.CRYPTO)
    two = transmission(b"PING")[1:]
    assert await forward(peer, b"\2" + two + two) == err(Simple.BLOCK)


async def test_only_what_a_sender_needs(fleet: Fleet, relay: Fleet, relay_queue: Queue) -> None:
    proxied = await Proxied.connect(await fleet.client(), relay.address())
    for command in (cmd.SUB(), cmd.DEL(), cmd.GET(), cmd.NSUB()):
        assert await proxied.do(command, relay_queue.rcv_id, relay_queue.rcv_key) == ERR(CommandError.PROHIBITED)
    assert await proxied.do(cmd.PING()) == ERR(CommandError.PROHIBITED)
    twice = [(cmd.SEND(False, b"1"), relay_queue.snd_id, None)] * 2
    reply = await proxied.do(twice)  # type: ignore[arg-type]
    assert reply == ERR(ProxyError(ProxyProtocol(Simple.BLOCK))), "single transmissions only"


async def test_rfwd_that_is_no_proxy(relay: Fleet) -> None:
    """Anybody may send RFWD; only the right box opens it."""
    peer = await relay.client()
    assert await peer.do(cmd.RFWD(os.urandom(100))) == err(Simple.CRYPTO)
