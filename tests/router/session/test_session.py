"""One connection: bad input, pipelines, and the state after it has closed."""

import asyncio
import os

import pytest

from tests.router.fleet import Fleet, Peer, err, sok
from tests.router.session.test_outgoing import until
from weir.client.smp import Request
from weir.crypto.authenticator import sign
from weir.crypto.keys import generate
from weir.wire.errors import CommandError, ErrorType, Simple
from weir.wire.smp import commands as cmd
from weir.wire.smp.replies import ERR, OK, PONG, SOK
from weir.wire.smp.transmission import encode_client
from weir.wire.versions import VersionRange

KEY = generate("ed25519")
SIGNATURE = sign("ed25519", KEY.private, b"anything")
ID = b"12345678".ljust(24, b"-")
SPKI = bytes((44,)) + KEY.spki


async def answer(peer: Peer, auth: bytes, entity_id: bytes, command: bytes) -> object:
    """The reply to a transmission made by hand."""
    corr_id = os.urandom(24)
    session = peer.smp.session
    sent = b"" if session.imply_session_id else bytes((len(session.session_id),)) + session.session_id
    sent += bytes((24,)) + corr_id + bytes((len(entity_id),)) + entity_id + command
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    peer.smp.submit_encoded(encode_client(session, sent, auth, None), corr_id, future.set_result)
    async with asyncio.timeout(10):
        return await future


@pytest.mark.parametrize("version", [6, 7, 16, 19])
@pytest.mark.parametrize(
    ("auth", "entity_id", "command", "error"),
    [
        (b"", ID, b"HELLO", CommandError.UNKNOWN),
        (b"", b"", b"OK", CommandError.UNKNOWN),
        (SIGNATURE, b"", b"NEW", CommandError.SYNTAX),
        (SIGNATURE, ID, b"KEY " + SPKI, Simple.AUTH),
        (SIGNATURE, ID, b"KEY", CommandError.SYNTAX),
        (b"", ID, b"KEY " + SPKI, CommandError.NO_AUTH),
        (SIGNATURE, b"", b"KEY " + SPKI, CommandError.NO_AUTH),
        (SIGNATURE, ID, b"SUB", Simple.AUTH),
        (SIGNATURE, ID, b"SUB=", CommandError.UNKNOWN),
        (b"", ID, b"SUB", CommandError.NO_AUTH),
        (SIGNATURE, b"", b"SUB", CommandError.NO_AUTH),
        (SIGNATURE, ID, b"OFF", Simple.AUTH),
        (SIGNATURE, ID, b"DEL", Simple.AUTH),
        (SIGNATURE, ID, b"SEND F hello", Simple.AUTH),
        (SIGNATURE, ID, b"SEND", CommandError.SYNTAX),
        (SIGNATURE, b"", b"SEND F hello", CommandError.NO_ENTITY),
        (SIGNATURE, ID, b"ACK \x041234", Simple.AUTH),
        (SIGNATURE, ID, b"ACK", CommandError.SYNTAX),
        (SIGNATURE, b"", b"ACK \x041234", CommandError.NO_AUTH),
        (b"", ID, b"ACK \x041234", CommandError.NO_AUTH),
        (b"", ID, b"PING", CommandError.HAS_AUTH),
        (SIGNATURE, b"", b"PING", CommandError.HAS_AUTH),
    ],
)
async def test_syntax_and_credentials(
    fleet: Fleet, version: int, auth: bytes, entity_id: bytes, command: bytes, error: ErrorType
) -> None:
    peer = await fleet.client(0, versions=VersionRange(6, version))
    assert await answer(peer, auth, entity_id, command) == err(error)
    assert await peer.do(cmd.PING()) == PONG(), "the connection goes on"


async def test_an_authorisation_of_no_known_size(fleet: Fleet) -> None:
    """The answer is ERR BLOCK, without an entity id."""
    peer = await fleet.client(0)
    assert await answer(peer, b"too short", ID, b"SUB") == err(Simple.BLOCK)


async def test_another_session_id(fleet: Fleet) -> None:
    peer = await fleet.client(0, versions=VersionRange(6, 6))
    t = b"\0" + b"\x20" + bytes(32) + b"\x02ab" + b"\0" + b"PING"
    peer.smp.connection.send_contents([b"\1" + len(t).to_bytes(2, "big") + t])
    event = await peer.event()
    assert (event.corr_id, event.reply) == (b"ab", ERR(Simple.SESSION))


async def test_a_whole_block_of_nonsense(fleet: Fleet) -> None:
    peer = await fleet.client(0)
    for _ in range(20):
        peer.smp.connection.send_contents([os.urandom(1000)])
    peer.smp.connection.send_raw(os.urandom(16384))  # no block that the edge can open
    for _ in range(21):
        event = await peer.event()
        assert isinstance(event.reply, ERR)
    assert fleet[0].router.clients


async def test_many_commands_in_flight(fleet: Fleet) -> None:
    """Thousands at once on one connection: all are answered, none is lost, the connection is bounded meanwhile."""
    c = await fleet.client(0)
    queues = [await c.new() for _ in range(20)]
    client = next(iter(fleet[0].router.clients.values()))
    requests = [Request(cmd.SUB(), q.rcv_id, q.rcv_key) for q in queues] * 50
    requests += [Request(cmd.PING())] * 1000
    replies = await c.smp.send_many(requests)
    assert replies == [SOK()] * 1000 + [PONG()] * 1000
    assert (
        client.incoming.holds == 0
        and client.incoming.in_progress == 0
        and not client.incoming.blocks
        and not client.incoming.share.waiting
    )


async def test_a_client_that_leaves_in_the_middle(fleet: Fleet) -> None:
    """Commands under way are finished, and what they subscribed is released."""
    r, s = await fleet.client(0), await fleet.client(1)
    owner = await fleet.client(0)
    queues = [await owner.new(subscribe=False) for _ in range(60)]
    for queue in queues:
        r.smp.submit(cmd.SUB(), queue.rcv_id, queue.rcv_key, lambda _: None)
    for _ in range(5):
        key = generate("x25519")
        r.smp.submit(cmd.NEW(key.spki, key.public, queue_req=cmd.MessagingReq()), b"", key, lambda _: None)
    r.smp.flush()
    await asyncio.sleep(0.005)
    r.smp.connection.abort()
    await until(lambda: len(fleet[0].router.clients) == 1)
    await until(lambda: not fleet[0].router._tasks)
    store = fleet[0].store
    for queue in queues:
        record = await store.lookups.get_rcv(queue.rcv_id)
        assert record is not None
        p = record.partition
        owner_token = await store.core.ask(p, b"HGET", b"{%d}:q:%b" % (p, queue.rcv_id), b"o")
        assert not owner_token, "nobody owns it"
    for queue in queues[:5]:
        assert await s.send(queue, b"1") == OK()
        assert await s.sub(queue) == sok(s)
        assert await s.text(queue) == b"1"


@pytest.mark.parametrize("version", range(6, 20))
async def test_every_version(fleet: Fleet, version: int) -> None:
    r = await fleet.client(0, versions=VersionRange(6, version))
    s = await fleet.client(1, versions=VersionRange(6, version))
    assert r.smp.session.version == version
    key_type = "x25519" if version >= 7 else "ed25519"
    queue = await r.new(key_type, request=None, secure=True)  # type: ignore[arg-type]
    assert await s.send(queue, b"hello") == OK()
    assert await r.text(queue) == b"hello"
    assert await r.sub(queue) == sok(r)
    assert await r.do(cmd.DEL(), queue.rcv_id, queue.rcv_key) == OK()


async def test_unreadable_blocks_are_answered(fleet: Fleet) -> None:
    c = await fleet.client(0)
    for content in (b"", b"\0", b"\1", b"\1\0\1", b"\2\0\1\0"):
        c.smp.connection.send_contents([content])
        event = await c.event()
        assert event.reply == ERR(Simple.BLOCK)
    await c.smp.ping()
