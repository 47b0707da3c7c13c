"""The agent: subscriptions that come back, and what it does when the service does not."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.client.scripted import SERVICE_ID, Script, Session, StartScript
from weir.client.agent import AgentConfig, SmpAgent
from weir.client.events import (
    AgentEvent,
    Connected,
    Deleted,
    Disconnected,
    Ended,
    Message,
    Mismatch,
    ServiceAll,
    ServiceDisconnected,
    ServiceEnded,
    ServiceFailed,
    ServiceSubscribed,
    ServiceUnavailable,
    Subscribed,
    SubscribeErrors,
    mismatch,
)
from weir.client.smp import ServiceSub
from weir.crypto.certificates import make_self_signed
from weir.crypto.keys import KeyPair, generate
from weir.transport.smp import ServiceCredentials
from weir.wire.errors import HandshakeError, Simple
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import NSUB, SUB, SUBS, ServiceRole
from weir.wire.smp.replies import ALLS, DELD, END, ENDS, ERR, MSG, Reply
from weir.wire.smp.transmission import ClientTransmission, ServerTransmission

CONFIG = AgentConfig(first_retry=0.01, max_retry=0.05, refused_after=0)
OTHER_ID = b"other-service-id-24-byte"


def queues(script: Script, count: int) -> dict[bytes, KeyPair]:
    made = {b"queue-%018d" % i: generate("x25519") for i in range(count)}
    script.keys.update(made)
    return made


def service(role: ServiceRole = ServiceRole.MESSAGING) -> ServiceCredentials:
    return ServiceCredentials.self_signed(role, make_self_signed())


class Told:
    """The agent's events, in order."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[AgentEvent] = asyncio.Queue()

    def __call__(self, event: AgentEvent) -> None:
        self.queue.put_nowait(event)

    async def next(self) -> AgentEvent:
        async with asyncio.timeout(10):
            return await self.queue.get()

    async def expect(self, *events: AgentEvent) -> None:
        assert [await self.next() for _ in events] == list(events)


@pytest.fixture
async def told() -> AsyncIterator[Told]:
    told = Told()
    yield told
    assert told.queue.empty(), told.queue.get_nowait()


async def test_queues_come_back_after_a_disconnection(script: Script, told: Told) -> None:
    own = queues(script, 3)
    ids = tuple(own)
    async with SmpAgent(script.address, told, config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Subscribed(None, ids))
        script.sessions[0].connection.abort()
        await told.expect(Disconnected(ids), Connected(None), Subscribed(None, ids))
        assert list(agent.active) == list(ids) and not agent.pending
    assert len(script.sessions) == 2


async def test_a_callback_that_fails_does_not_end_the_agent(script: Script, told: Told) -> None:
    own = queues(script, 1)
    failures = [KeyError(), None]

    def notify(event: AgentEvent) -> None:
        if failures and (failure := failures.pop()) is not None:
            raise failure
        told(event)

    async with SmpAgent(script.address, notify, config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Disconnected(tuple(own)), Connected(None), Subscribed(None, tuple(own)))


async def test_batches_are_bounded(script: Script, told: Told) -> None:
    own = queues(script, 10)
    async with SmpAgent(script.address, told, config=AgentConfig(batch=4)) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), *(Subscribed(None, tuple(list(own)[at : at + 4])) for at in range(0, 10, 4)))


async def test_errors_of_the_router_are_final(script: Script, told: Told) -> None:
    own = queues(script, 2)
    first, second = own
    del script.keys[first]
    async with SmpAgent(script.address, told, config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Subscribed(None, (second,)), SubscribeErrors(((first, ERR(Simple.AUTH)),)))
        assert list(agent.active) == [second] and not agent.pending


async def test_router_that_is_not_there_yet(start: StartScript, told: Told) -> None:
    script = await start()
    address = script.address
    await script.listener.close()
    async with SmpAgent(address, told, config=CONFIG) as agent:
        own = queues(script, 1)
        agent.subscribe(own.items())
        await asyncio.sleep(0.05)
        again = await start(address.port)
        again.keys.update(own)
        await told.expect(Connected(None), Subscribed(None, tuple(own)))


async def test_router_that_does_not_answer_is_left(script: Script, told: Told) -> None:
    own = queues(script, 1)
    silent = True

    def answer(session: Session, one: ClientTransmission) -> Reply | None:
        return None if silent else session.default(session, one)

    script.answer = answer
    config = AgentConfig(first_retry=0.01, connect={"reply_timeout": 0.5})
    async with SmpAgent(script.address, told, config=config) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Connected(None))
        silent = False
        event = await told.next()
        while isinstance(event, Connected):
            event = await told.next()
        assert event == Subscribed(None, tuple(own))


async def test_silence_is_ended_by_ping(script: Script, told: Told) -> None:
    own = queues(script, 1)
    config = AgentConfig(first_retry=0.01, ping_interval=0.1, connect={"reply_timeout": 1.0})
    async with SmpAgent(script.address, told, config=config) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Subscribed(None, tuple(own)))
        script.answer = lambda _session, _one: None
        await told.expect(Disconnected(tuple(own)))
        script.answer = None
        event = await told.next()
        while isinstance(event, Connected):
            event = await told.next()
        assert event == Subscribed(None, tuple(own))


async def test_what_the_router_says_by_itself(script: Script, told: Told) -> None:
    own = queues(script, 3)
    first, second, third = own
    async with SmpAgent(script.address, told, config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Subscribed(None, tuple(own)))
        message = MSG(bytes(24), b"body")
        script.sessions[0].say(message, third)
        script.sessions[0].say(END(), first)
        script.sessions[0].say(DELD(), second)
        await told.expect(Message(ServerTransmission(b"", third, message)), Ended(first), Deleted(second))
        assert list(agent.active) == [third]
        script.sessions[0].connection.abort()
        await told.expect(Disconnected((third,)), Connected(None), Subscribed(None, (third,)))


async def test_forgotten_queues_stay_away(script: Script, told: Told) -> None:
    own = queues(script, 2)
    first, second = own
    async with SmpAgent(script.address, told, config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(None), Subscribed(None, tuple(own)))
        agent.forget([first])
        script.sessions[0].connection.abort()
        await told.expect(Disconnected((second,)), Connected(None), Subscribed(None, (second,)))


async def test_notifiers(script: Script, told: Told) -> None:
    own = queues(script, 1)
    async with SmpAgent(
        script.address, told, role=ServiceRole.NOTIFIER, service=service(ServiceRole.NOTIFIER), config=CONFIG
    ) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(SERVICE_ID), Subscribed(SERVICE_ID, tuple(own)))
    assert script.commands() == [NSUB()]


# Services


async def test_service_comes_back_with_one_command(script: Script, told: Told) -> None:
    own = queues(script, 3)
    expected = ServiceSub(SERVICE_ID, 3, ids_hash.of_ids(own))
    script.count, script.ids_hash = expected.count, expected.ids_hash
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(SERVICE_ID), Subscribed(SERVICE_ID, tuple(own)))
        assert agent.active_service == expected and not agent.active
        script.sessions[0].connection.abort()
        await told.expect(
            ServiceDisconnected(expected), Connected(SERVICE_ID), ServiceSubscribed(expected, expected, None)
        )
        assert script.commands(SUBS) == [SUBS(3, expected.ids_hash)]
        assert len(script.commands(SUB)) == 3
        script.sessions[1].say(ALLS())
        await told.expect(ServiceAll())


async def test_drift_is_told_and_lived_with(script: Script, told: Told) -> None:
    expected = ServiceSub(SERVICE_ID, 3, bytes(16))
    script.count = 2
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe_service(expected)
        found = ServiceSub(SERVICE_ID, 2, bytes(16))
        await told.expect(Connected(SERVICE_ID), ServiceSubscribed(expected, found, Mismatch.COUNT))
        assert agent.active_service == found


async def test_tg_svc_09_other_service_id_falls_back_to_queues(script: Script, told: Told) -> None:
    """The router gives the certificate another id: the queues are subscribed one by one, and associated anew."""
    own = queues(script, 3)
    expected = ServiceSub(OTHER_ID, 3, ids_hash.of_ids(own))

    async def stored() -> list[tuple[bytes, KeyPair]]:
        return list(own.items())

    async with SmpAgent(script.address, told, service=service(), service_queues=stored, config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(Connected(SERVICE_ID), ServiceUnavailable(expected), Subscribed(SERVICE_ID, tuple(own)))
        assert agent.pending_service is None  # TG-SVC-14
        assert agent.active_service == ServiceSub(SERVICE_ID, 3, expected.ids_hash)
    assert script.commands(SUBS) == []


async def test_r_svc_08_service_id_changes_between_connections(script: Script, told: Told) -> None:
    own = queues(script, 2)
    first = ServiceSub(SERVICE_ID, 2, ids_hash.of_ids(own))
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(SERVICE_ID), Subscribed(SERVICE_ID, tuple(own)))
        script.service_id = OTHER_ID
        script.sessions[0].connection.abort()
        await told.expect(
            ServiceDisconnected(first),
            Connected(OTHER_ID),
            ServiceUnavailable(first),
            Subscribed(OTHER_ID, tuple(own)),
        )
        assert agent.active_service == ServiceSub(OTHER_ID, 2, first.ids_hash)


async def test_tg_svc_13_refused_service_falls_back_to_queues(script: Script, told: Told) -> None:
    """The handshake refuses the service: the agent connects without it."""
    own = queues(script, 2)
    first = ServiceSub(SERVICE_ID, 2, ids_hash.of_ids(own))
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(SERVICE_ID), Subscribed(SERVICE_ID, tuple(own)))
        script.service_id = HandshakeError.BAD_SERVICE
        script.sessions[0].connection.abort()
        await told.expect(
            ServiceDisconnected(first), ServiceUnavailable(first), Connected(None), Subscribed(None, tuple(own))
        )
        assert agent.active_service is None and agent.pending_service is None
        assert list(agent.active) == list(own)


async def test_a_router_that_refuses_the_service_for_a_moment_keeps_it(script: Script, told: Told) -> None:
    """A router whose store fails refuses every service. Giving the service up would cost a SUB for each queue."""
    script.service_id = HandshakeError.BAD_SERVICE
    config = AgentConfig(first_retry=0.01, max_retry=0.05, refused_after=60)
    async with SmpAgent(script.address, told, service=service(), config=config) as agent:
        agent.subscribe_service(ServiceSub(SERVICE_ID, 0, bytes(16)))
        await asyncio.sleep(0.3)
        script.service_id = SERVICE_ID
        assert await told.next() == Connected(SERVICE_ID)
        assert isinstance(await told.next(), ServiceSubscribed)


async def test_service_error_falls_back_to_queues(script: Script, told: Told) -> None:
    own = queues(script, 1)
    expected = ServiceSub(SERVICE_ID, 1, ids_hash.of_ids(own))

    async def stored() -> list[tuple[bytes, KeyPair]]:
        return list(own.items())

    def answer(session: Session, one: ClientTransmission) -> Reply:
        return ERR(Simple.SERVICE) if isinstance(one.command, SUBS) else session.default(session, one)

    script.answer = answer
    async with SmpAgent(script.address, told, service=service(), service_queues=stored, config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(Connected(SERVICE_ID), ServiceUnavailable(expected), Subscribed(SERVICE_ID, tuple(own)))


@pytest.mark.parametrize("failing", ["the storage", "the callback"])
async def test_a_fallback_that_fails_is_repeated(script: Script, told: Told, failing: str) -> None:
    """The owner's storage or callback fails once. The service's queues are subscribed to all the same."""
    own = queues(script, 2)
    expected = ServiceSub(OTHER_ID, 2, ids_hash.of_ids(own))
    failures = [failing]

    async def stored() -> list[tuple[bytes, KeyPair]]:
        if failures == ["the storage"]:
            failures.clear()
            raise KeyError
        return list(own.items())

    def on_event(event: AgentEvent) -> None:
        if failures == ["the callback"] and isinstance(event, ServiceUnavailable):
            failures.clear()
            raise KeyError
        if isinstance(event, Subscribed):
            told(event)

    async with SmpAgent(script.address, on_event, service=service(), service_queues=stored, config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(Subscribed(SERVICE_ID, tuple(own)))
        assert not failures


async def test_service_without_its_queues_falls_back(script: Script, told: Told) -> None:
    own = queues(script, 1)
    expected = ServiceSub(SERVICE_ID, 1, ids_hash.of_ids(own))

    async def stored() -> list[tuple[bytes, KeyPair]]:
        return list(own.items())

    async with SmpAgent(script.address, told, service=service(), service_queues=stored, config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(
            Connected(SERVICE_ID),
            ServiceSubscribed(expected, ServiceSub(SERVICE_ID, 0, bytes(16)), Mismatch.COUNT),
            ServiceUnavailable(expected),
            Subscribed(SERVICE_ID, tuple(own)),
        )
        assert agent.active_service == expected


async def test_other_errors_of_subs_are_told(script: Script, told: Told) -> None:
    expected = ServiceSub(SERVICE_ID, 1, bytes(16))

    def answer(session: Session, one: ClientTransmission) -> Reply:
        return ERR(Simple.INTERNAL)

    script.answer = answer
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(Connected(SERVICE_ID), ServiceFailed(expected, ERR(Simple.INTERNAL)))
        assert agent.pending_service is None and agent.active_service is None


async def test_tg_svc_11_ends_leaves_the_service_to_the_other(script: Script, told: Told) -> None:
    """After ENDS the service is not fought over: a reconnection does not subscribe it again."""
    own = queues(script, 1)
    known = ServiceSub(SERVICE_ID, 1, ids_hash.of_ids(own))
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe(own.items())
        await told.expect(Connected(SERVICE_ID), Subscribed(SERVICE_ID, tuple(own)))
        script.sessions[0].say(ENDS(1, known.ids_hash), SERVICE_ID)
        await told.expect(ServiceEnded(known, known))
        script.sessions[0].connection.abort()
        await told.expect(Connected(SERVICE_ID))
        assert agent.active_service is None and agent.pending_service is None
    assert script.commands(SUBS) == []


async def test_tg_svc_10_service_and_queues_resubscribe_together(script: Script, told: Told) -> None:
    """A reconnection with both: SUBS for the service's, SUB for those that are not its own."""
    own = queues(script, 2)
    alone, served = own
    expected = ServiceSub(SERVICE_ID, 1, ids_hash.of_ids([served]))
    script.count, script.ids_hash = 1, expected.ids_hash
    async with SmpAgent(script.address, told, service=service(), config=CONFIG) as agent:
        agent.subscribe_service(expected)
        await told.expect(Connected(SERVICE_ID), ServiceSubscribed(expected, expected, None))
        agent.subscribe([(alone, own[alone])])
        await told.expect(Subscribed(SERVICE_ID, (alone,)))
        both = ServiceSub(SERVICE_ID, 2, ids_hash.of_ids(own))
        assert agent.active_service == both
        script.count, script.ids_hash = 2, both.ids_hash
        script.sessions[0].connection.abort()
        await told.expect(ServiceDisconnected(both), Connected(SERVICE_ID), ServiceSubscribed(both, both, None))


@pytest.mark.parametrize(
    ("subscribed", "found"),
    [
        (ServiceSub(SERVICE_ID, 1, bytes(16)), None),
        (ServiceSub(OTHER_ID, 2, b"h" * 16), Mismatch.SERVICE_ID),
        (ServiceSub(SERVICE_ID, 2, b"h" * 16), Mismatch.COUNT),
        (ServiceSub(SERVICE_ID, 1, b"h" * 16), Mismatch.IDS_HASH),
    ],
)
def test_mismatch_names_the_first_difference(subscribed: ServiceSub, found: Mismatch | None) -> None:
    assert mismatch(ServiceSub(SERVICE_ID, 1, bytes(16)), subscribed) is found
