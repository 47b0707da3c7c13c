"""One connection: authorisation, batches, pending replies, events, time limits."""

import asyncio

import pytest

from tests.client.scripted import SERVICE_ID, Script, Session
from weir.client.base import CLOSED
from weir.client.errors import CommandNotSent, ConnectionClosed, NoServiceSession, ReplyTimeout
from weir.client.smp import Request, ServiceSub, SmpClient
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import KeyType, generate
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import Simple, TransportError
from weir.wire.smp.commands import ACK, DEL, OFF, PING, SEND, SUB, SUBS, ServiceRole
from weir.wire.smp.replies import END, ERR, MSG, OK, PONG, SOK
from weir.wire.smp.transmission import ClientTransmission, ServerTransmission
from weir.wire.versions import VersionRange

QUEUE = b"queue-id-with-24-bytes.."


def service(role: ServiceRole = ServiceRole.MESSAGING) -> ServiceCredentials:
    return ServiceCredentials.self_signed(role, make_self_signed())


@pytest.mark.parametrize("version", [6, 7, 15, 16, 19])
@pytest.mark.parametrize("key_type", ["ed25519", "ed448", "x25519"])
async def test_authorised_commands(script: Script, key_type: KeyType, version: int) -> None:
    key = script.keys[QUEUE] = generate(key_type)
    async with await SmpClient.connect(script.address, versions=VersionRange(6, version)) as client:
        assert await client.send(SUB(), QUEUE, key) == (SOK() if version >= 16 else OK())
        assert await client.send(OFF(), QUEUE, generate(key_type)) == ERR(Simple.AUTH)
        assert await client.send(DEL(), QUEUE, key) == OK()


async def test_server_without_a_key_takes_no_authenticators(script: Script) -> None:
    async with await SmpClient.connect(script.address, alpn=False) as client:
        with pytest.raises(CommandNotSent) as failure:
            await client.send(SUB(), QUEUE, generate("x25519"))
        assert failure.value.error is TransportError.NO_AUTH
        assert await client.send(PING()) == PONG()


@pytest.mark.parametrize("key_type", ["ed25519", "ed448", "x25519"])
async def test_service_signs_new_sub_and_nsub_only(script: Script, key_type: KeyType) -> None:
    key = script.keys[QUEUE] = generate(key_type)
    async with await SmpClient.connect(script.address, service=service()) as client:
        assert await client.send(SUB(), QUEUE, key) == SOK(SERVICE_ID)
        assert await client.send(ACK(bytes(24)), QUEUE, key) == OK()
        assert [one.service_sig is not None for one in script.sessions[0].received] == [True, False]


async def test_subscribe_service(script: Script) -> None:
    script.count, script.ids_hash = 3, b"h" * 16
    async with await SmpClient.connect(script.address, service=service()) as client:
        subscribed = await client.subscribe_service(ServiceRole.MESSAGING, 2, bytes(16))
        assert subscribed == ServiceSub(SERVICE_ID, 3, b"h" * 16)
        assert script.commands(SUBS) == [SUBS(2, bytes(16))]
        with pytest.raises(NoServiceSession):
            await client.subscribe_service(ServiceRole.NOTIFIER, 2, bytes(16))


async def test_subscribe_service_without_one(script: Script) -> None:
    async with await SmpClient.connect(script.address) as client:
        with pytest.raises(NoServiceSession):
            await client.subscribe_service(ServiceRole.MESSAGING, 0, bytes(16))


async def test_batches_share_blocks(script: Script) -> None:
    """255 transmissions at most; 16,365 bytes."""
    keys = [generate("x25519") for _ in range(300)]
    ids = [i.to_bytes(24, "big") for i in range(300)]
    script.keys.update(zip(ids, keys, strict=True))
    async with await SmpClient.connect(script.address) as client:
        requests = [Request(SUB(), *pair) for pair in zip(ids, keys, strict=True)]
        assert await client.send_many(requests) == [SOK()] * 300
        assert script.sessions[0].blocks == 3
        assert [one.entity_id for one in script.sessions[0].received] == ids


async def test_message_that_does_not_fit(script: Script) -> None:
    async with await SmpClient.connect(script.address) as client:
        with pytest.raises(CommandNotSent) as failure:
            await client.send(SEND(False, bytes(16400)), QUEUE)
        assert failure.value.error is TransportError.LARGE_MSG
        assert await client.send(PING()) == PONG()


async def test_events_and_replies_in_any_order(script: Script) -> None:
    held: list[ClientTransmission] = []

    def answer(session: Session, one: ClientTransmission) -> None:
        held.append(one)
        if len(held) == 2:
            session.say(END(), QUEUE)
            session.say(PONG(), b"", held[1].corr_id)
            session.say(MSG(bytes(24), b"body"), QUEUE)
            session.say(ERR(Simple.INTERNAL), b"", held[0].corr_id)

    script.answer = answer
    async with await SmpClient.connect(script.address) as client:
        assert await asyncio.gather(client.send(PING()), client.send(PING())) == [ERR(Simple.INTERNAL), PONG()]
        assert await client.events.get() == ServerTransmission(b"", QUEUE, END())
        assert await client.events.get() == ServerTransmission(b"", QUEUE, MSG(bytes(24), b"body"))


async def test_reply_that_comes_too_late_is_an_event(script: Script) -> None:
    late: list[ClientTransmission] = []
    script.answer = lambda _session, one: late.append(one)  # type: ignore[func-returns-value]
    async with await SmpClient.connect(script.address) as client:
        with pytest.raises(ReplyTimeout):
            await client.send(PING(), timeout=0.05)
        with pytest.raises(ReplyTimeout):
            await client.send_many([Request(PING())] * 3, timeout=0.05)
        script.sessions[0].say(PONG(), b"", late[0].corr_id)
        assert await client.events.get() == ServerTransmission(late[0].corr_id, b"", PONG())


async def test_end_of_the_connection(script: Script) -> None:
    script.answer = lambda _session, _one: None
    client = await SmpClient.connect(script.address)
    answers: list[object] = []
    client.submit(PING(), b"", None, answers.append)
    many = asyncio.ensure_future(client.send_many([Request(PING())] * 3))
    await script.arrived.wait()
    while not script.sessions[0].received:
        await asyncio.sleep(0)
    script.sessions[0].connection.close()
    with pytest.raises(ConnectionClosed):
        await many
    assert answers == [CLOSED]
    with pytest.raises(ConnectionClosed):
        await client.send(PING())
    await client.close()


async def test_chosen_correlation_id(script: Script) -> None:
    async with await SmpClient.connect(script.address) as client:
        assert await client.send(PING(), corr_id=b"c" * 24) == PONG()
        assert script.sessions[0].received[0].corr_id == b"c" * 24


async def test_send_each_says_what_became_of_each(script: Script) -> None:
    keys = [generate() for _ in range(4)]
    ids = [b"queue-%018d" % n for n in range(4)]
    script.keys.update(zip(ids, keys, strict=True))
    script.keys[ids[1]] = generate()
    script.answer = lambda session, one: None if one.entity_id == ids[2] else Session.default(session, one)
    async with await SmpClient.connect(script.address, keep_secrets=False) as client:
        requests = [Request(SUB(), queue_id, key) for queue_id, key in zip(ids, keys, strict=True)]
        requests.append(Request(SEND(False, bytes(20_000)), ids[3], keys[3]))
        first, second, third, fourth, fifth = await client.send_each(requests, timeout=0.5)
        assert (first, second, fourth) == (SOK(), ERR(Simple.AUTH), SOK())
        assert isinstance(third, ReplyTimeout) and isinstance(fifth, CommandNotSent)
        assert not client._pending and client._secrets is None
        script.answer = lambda session, one: session.connection.close()
        answers = await client.send_each(requests[:2])
        assert [type(answer) for answer in answers] == [ConnectionClosed] * 2
        assert await client.send_each([]) == []
