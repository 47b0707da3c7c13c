"""Pushes from NMSG and from Redis to the providers, on a real store."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.notifier.push import world
from tests.notifier.push.world import Edge, Held, until
from tests.notifier.store.harness import SMP1
from tests.support.redis import RedisServer, redis_server, redis_servers
from weir.notifier.outcome import Delivered, Failed, Invalid, RetryLater
from weir.notifier.push import dispatcher as module
from weir.notifier.push.provider import Accepting, Provider
from weir.notifier.store.records import Push, PushKind, Subscription, Token
from weir.redis.errors import Unavailable
from weir.telemetry.tracing import NULL_SPAN, Span, Tracer
from weir.wire.ntf.types import DeviceToken, InvalidReason, PushProvider, TokenInvalid, TokenStatus

__all__ = ["redis_server", "redis_servers"]

AP, WP, AN = PushProvider.APNS_PROD, PushProvider.WEB_PUSH, PushProvider.APNS_NULL
OpenEdge = Callable[..., Awaitable[Edge]]


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for due pushes often, and let those without a slot wait briefly."""
    for name in ("INTERVAL", "_FULL", "_LANE_FULL", "_CLOSE"):
        monkeypatch.setattr(module, name, 0.05)


@pytest.fixture
async def open_edge(redis_server: RedisServer) -> AsyncIterator[OpenEdge]:
    edges: list[Edge] = []

    async def opened(providers: dict[PushProvider, Provider], **options: Any) -> Edge:
        edges.append(await world.open_edge(redis_server.url, providers, **options))
        return edges[-1]

    yield opened
    for edge in edges:
        await edge.close()


def device(provider: PushProvider = AP, token: bytes | None = None) -> DeviceToken:
    return DeviceToken(provider, token or os.urandom(16).hex().encode())


async def subscribed(edge: Edge, of: DeviceToken) -> tuple[Token, Subscription]:
    token = await edge.active(of)
    return token, await edge.subscription(token)


async def test_a_notification_is_pushed_at_once(open_edge: OpenEdge) -> None:
    provider = Held()
    edge = await open_edge({AP: provider})
    token, sub = await subscribed(edge, device())
    await edge.notify(sub)
    push = await provider.sent.get()
    assert (push.kind, push.token.id, len(push.messages)) == (PushKind.MESSAGES, token.id, 1)
    assert edge.dispatcher.gauges()["push_in_flight_apns_prod"] == 1
    provider.open.set()
    await until(lambda: edge.stats.ntfDelivered == 1)
    assert edge.stats.pushes == {"apns_prod_delivered": 1}
    assert sum(edge.stats.pushMs.values()) == 1
    await until(lambda: not edge.dispatcher.gauges()["pushes_in_flight"])


async def test_what_comes_while_a_push_is_in_progress_is_one_more_push(open_edge: OpenEdge) -> None:
    """Ten queues of one token: the first push carries one notification, the second one the newest six."""
    provider = Held()
    edge = await open_edge({AP: provider})
    token = await edge.active(device())
    subs = [await edge.subscription(token) for _ in range(10)]
    await edge.notify(subs[0])
    await provider.sent.get()
    for sub in subs[1:]:
        assert (await edge.notify(sub)).push is None
    assert provider.sent.empty()
    provider.open.set()
    second = await provider.sent.get()
    assert [message.queue.notifier_id for message in second.messages] == [s.queue.notifier_id for s in subs[4:]]
    await until(lambda: edge.stats.ntfDelivered == 2)
    assert provider.sent.empty()


async def test_behaviour_4_the_null_provider_counts_nothing(open_edge: OpenEdge) -> None:
    edge = await open_edge({AN: Accepting(), AP: Accepting()})
    _, null = await subscribed(edge, device(AN))
    _, real = await subscribed(edge, device(AP))
    await edge.notify(null)
    await edge.notify(real)
    await until(lambda: edge.stats.ntfDelivered == 1 and not edge.dispatcher.gauges()["pushes_in_flight"])
    assert edge.stats.pushes == {"apns_prod_delivered": 1}
    assert sum(edge.stats.pushMs.values()) == 1


async def test_behaviour_17_messages_need_an_active_token_and_a_verification_does_not(open_edge: OpenEdge) -> None:
    provider = Held()
    provider.open.set()
    edge = await open_edge({AP: provider})
    await edge.dispatcher.start()
    token = await edge.registered(device())
    assert (await provider.sent.get()).kind is PushKind.VERIFICATION
    await until(lambda: edge.stats.ntfVrfDelivered == 1)
    assert await edge.store.tokens.activate(await edge.fetched(token), token.code)
    sub = await edge.subscription(await edge.fetched(token))
    provider.outcome = Invalid(InvalidReason.UNREGISTERED)
    await edge.notify(sub)
    await provider.sent.get()
    await until(lambda: edge.stats.ntfFailed == 1)
    assert (await edge.fetched(token)).status == TokenInvalid(InvalidReason.UNREGISTERED)
    assert (await edge.notify(sub)).push is None
    await asyncio.sleep(0.2)  # a few searches for due pushes
    assert provider.sent.empty()


async def test_behaviour_23_a_delivered_verification_confirms_the_token(open_edge: OpenEdge) -> None:
    edge = await open_edge({AP: Accepting()})
    token = await edge.registered(device())
    push = await edge.store.pushes.claim(token)
    assert push is not None
    edge.dispatcher.offer(push)
    await until(lambda: edge.stats.ntfVrfDelivered == 1)
    await until(lambda: not edge.dispatcher.gauges()["pushes_in_flight"])
    assert (await edge.fetched(token)).status is TokenStatus.CONFIRMED


@pytest.mark.parametrize(
    ("outcome", "counter"),
    [(Invalid(InvalidReason.BAD), "ntfVrfInvalidTkn"), (Failed(), "ntfVrfFailed")],
)
async def test_verifications_that_fail(outcome: Any, counter: str, open_edge: OpenEdge) -> None:
    provider = Held()
    provider.open.set()
    provider.outcome = outcome
    edge = await open_edge({AP: provider})
    await edge.dispatcher.start()
    await edge.registered(device())
    await until(lambda: getattr(edge.stats, counter) == 1)


async def test_flaw_9_a_full_provider_holds_back_no_other(open_edge: OpenEdge) -> None:
    """The reference stops reading from all SMP servers. Here, what has no slot waits in Redis and is sent later."""
    full, other = Held(), Held()
    other.open.set()
    edge = await open_edge({AP: full, WP: other}, queue=3)
    await edge.dispatcher.start()
    stuck = [await subscribed(edge, device(AP)) for _ in range(10)]
    _, free = await subscribed(edge, device(WP))
    for _, sub in stuck:
        await edge.notify(sub)
    await until(lambda: full.sent.qsize() == 3)
    assert not edge.dispatcher.room(AP)
    assert edge.dispatcher.room(WP)
    for _ in range(5):
        await edge.notify(free)
        await other.sent.get()
    assert full.sent.qsize() == 3
    full.open.set()
    await until(lambda: edge.stats.pushes.get("apns_prod_delivered") == 10)
    assert sorted(full.sent.get_nowait().token.id for _ in range(10)) == sorted(token.id for token, _ in stuck)


async def test_flaw_10_pushes_are_in_progress_side_by_side(open_edge: OpenEdge) -> None:
    """The reference has one at a time for each worker."""
    provider = Held()
    edge = await open_edge({AP: provider})
    subs = [(await subscribed(edge, device()))[1] for _ in range(100)]
    for sub in subs:
        await edge.notify(sub)
    await until(lambda: provider.sent.qsize() == 100)
    assert edge.stats.ntfDelivered == 0
    provider.open.set()
    await until(lambda: edge.stats.ntfDelivered == 100)


async def test_a_busy_token_does_not_keep_a_slot(open_edge: OpenEdge) -> None:
    """One slot. The busy token has a next push whenever one ends; the others still have their turn."""

    class Busy(Provider):
        async def send(self, push: Push) -> Any:
            sent.append(push.token.id)
            if push.token.id == token.id:
                await edge.notify(busy)
            return Delivered()

    sent: list[bytes] = []
    edge = await open_edge({AP: Busy()}, queue=1)
    await edge.dispatcher.start()
    token, busy = await subscribed(edge, device())
    others = [await subscribed(edge, device()) for _ in range(5)]
    await edge.notify(busy)
    for _, sub in others:
        await edge.notify(sub)
    await until(lambda: {other.id for other, _ in others} <= set(sent))


async def test_a_slow_push_server_leaves_slots_to_others(open_edge: OpenEdge) -> None:
    provider = Held()
    edge = await open_edge({WP: provider}, queue=16)
    slow = [(await subscribed(edge, device(WP, b"slow/%d" % n)))[1] for n in range(8)]
    for sub in slow:
        await edge.notify(sub)
    await until(lambda: provider.sent.qsize() == 2)
    assert edge.dispatcher.room(WP)
    _, other = await subscribed(edge, device(WP, b"other/1"))
    await edge.notify(other)
    await until(lambda: provider.sent.qsize() == 3)
    await edge.dispatcher.start()
    provider.open.set()
    await until(lambda: edge.stats.ntfDelivered == 9)


async def test_a_failed_push_is_repeated_with_the_newest_messages(open_edge: OpenEdge) -> None:
    provider = Held()
    provider.outcome = RetryLater(0.1)
    provider.open.set()
    edge = await open_edge({AP: provider})
    await edge.dispatcher.start()
    token, first = await subscribed(edge, device())
    second = await edge.subscription(token)
    await edge.notify(first)
    assert len((await provider.sent.get()).messages) == 1
    await edge.notify(second)
    assert len((await provider.sent.get()).messages) == 2
    provider.outcome = Failed()
    await until(lambda: edge.stats.ntfFailed == 1)
    assert edge.stats.pushes["apns_prod_retry"] >= 2


async def test_pushes_wait_in_redis_while_a_provider_is_paused(open_edge: OpenEdge) -> None:
    provider = Held()
    provider.open.set()
    edge = await open_edge({AP: provider})
    await edge.dispatcher.start()
    _, sub = await subscribed(edge, device())
    provider.pause = 60.0
    assert not edge.dispatcher.room(AP)
    assert (await edge.notify(sub)).push is None
    await asyncio.sleep(0.2)
    assert provider.sent.empty()
    provider.pause = 0.0
    await provider.sent.get()


async def test_a_push_that_was_claimed_before_the_pause_is_given_back(open_edge: OpenEdge) -> None:
    provider = Held()
    edge = await open_edge({AP: provider})
    _, sub = await subscribed(edge, device())
    received = await edge.receive(sub)
    assert received.push is not None
    provider.pause = 0.05
    edge.dispatcher.offer(received.push)
    await until(lambda: not edge.dispatcher.gauges()["pushes_in_flight"])
    assert provider.sent.empty()
    assert edge.stats.pushLimited == {"apns_prod": 1}
    provider.pause = 0.0
    await edge.dispatcher.start()
    assert (await provider.sent.get()).token.id == received.push.token.id


async def test_a_push_of_a_killed_edge_is_repeated_by_another(open_edge: OpenEdge) -> None:
    dead, alive = Held(), Held()
    killed = await open_edge({AP: dead}, claim=0.5)
    token, sub = await subscribed(killed, device())
    await killed.notify(sub)
    await dead.sent.get()  # the push stays there
    other = await open_edge({AP: alive}, claim=0.5)
    other.store.stats.live_edges = _only(other)  # type: ignore[method-assign]
    await other.dispatcher.start()
    assert (await alive.sent.get()).token.id == token.id


async def test_a_stopping_edge_gives_back_what_does_not_end(open_edge: OpenEdge) -> None:
    provider, another = Held(), Held()
    edge, other = await open_edge({AP: provider}), await open_edge({AP: another})
    token, sub = await subscribed(edge, device())
    await edge.notify(sub)
    await provider.sent.get()
    await edge.dispatcher.close()
    assert not edge.dispatcher.room(AP)
    other.store.stats.live_edges = _only(other)  # type: ignore[method-assign]
    await other.dispatcher.start()
    assert (await another.sent.get()).token.id == token.id


async def test_pushes_in_progress_end_before_an_edge_stops(
    open_edge: OpenEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLOSE", 10.0)
    provider = Held()
    edge = await open_edge({AP: provider})
    _, sub = await subscribed(edge, device())
    await edge.notify(sub)
    await provider.sent.get()
    closing = asyncio.create_task(edge.dispatcher.close())
    await asyncio.sleep(0)
    provider.open.set()
    await closing
    assert edge.stats.ntfDelivered == 1
    assert await edge.store.pushes.waiting() == dict.fromkeys(PushProvider, 0)


async def test_an_unexpected_error_is_one_line_and_a_retry(
    open_edge: OpenEdge, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Provider):
        async def send(self, push: Push) -> Any:
            raise RuntimeError(push.token.device.token.decode())

    edge = await open_edge({AP: Broken()})
    _, sub = await subscribed(edge, device(token=b"secret-device"))
    with caplog.at_level(logging.INFO):
        await edge.notify(sub)
        await until(lambda: edge.stats.pushes == {"apns_prod_retry": 1})
    [line] = [record.getMessage() for record in caplog.records if "push" in record.getMessage()]
    assert line.startswith("a push failed (RuntimeError in test_dispatcher.py")
    assert "secret" not in caplog.text


async def test_a_provider_that_never_answers(open_edge: OpenEdge) -> None:
    provider = Held()
    edge = await open_edge({AP: provider}, timeout=0.05)
    _, sub = await subscribed(edge, device())
    await edge.notify(sub)
    await until(lambda: not edge.dispatcher.gauges()["pushes_in_flight"])
    assert edge.stats.pushes == {"apns_prod_retry": 1}


async def test_an_outcome_is_stored_when_redis_is_back(open_edge: OpenEdge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STORE_PAUSES", (0.01, 0.01, 0.01))
    edge = await open_edge({AP: Accepting()})
    _, sub = await subscribed(edge, device())
    done, failures = edge.store.pushes.done, [Unavailable(), Unavailable()]

    async def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return await done(*arguments)

    monkeypatch.setattr(edge.store.pushes, "done", failing)
    await edge.notify(sub)
    await until(lambda: not failures and not edge.dispatcher.gauges()["pushes_in_flight"])
    assert (await edge.store.pushes.waiting())[AP] == 0
    assert edge.stats.ntfDelivered == 1


async def test_a_provider_that_this_router_does_not_have(open_edge: OpenEdge) -> None:
    """Another router of the fleet may have it: the push waits."""
    edge = await open_edge({AP: Accepting()})
    token = await edge.registered(device(WP))
    push = await edge.store.pushes.claim(token)
    assert push is not None
    edge.dispatcher.offer(push)
    await until(lambda: not edge.dispatcher._tasks)
    assert not edge.dispatcher.room(WP)
    assert (await edge.store.pushes.waiting())[WP] == 1


async def test_periodic_pushes(open_edge: OpenEdge) -> None:
    provider = Held()
    provider.open.set()
    edge = await open_edge({AP: provider})
    token = await edge.active(device())
    check = Push(token, PushKind.CHECK, (), 1, b"claim")
    edge.dispatcher.offer(check)
    await until(lambda: edge.stats.ntfCronDelivered == 1)
    provider.outcome = Failed()
    edge.dispatcher.offer(check)
    await until(lambda: edge.stats.ntfCronFailed == 1)
    assert edge.stats.ntfDelivered == edge.stats.ntfFailed == 0


async def test_pushes_for_own_servers_are_counted_by_host(open_edge: OpenEdge) -> None:
    def own_name(server: Any) -> str:
        return "smp1.example.org" if server == SMP1 else ""

    edge = await open_edge({AP: Accepting()}, own_name=own_name)
    _, sub = await subscribed(edge, device())
    await edge.notify(sub)
    await until(lambda: edge.stats.ntfDeliveredOwn == {"smp1.example.org": 1})


async def test_edges_share_the_partitions(open_edge: OpenEdge) -> None:
    edges = [await open_edge({AP: Accepting()}) for _ in range(3)]
    live = [edge.store.edge for edge in edges]
    shares = [{p for p in range(64) if edge.dispatcher._is_responsible(p, live)} for edge in edges]
    assert set().union(*shares) == set(range(64))
    assert sum(map(len, shares)) == 64
    assert all(edge.dispatcher._is_responsible(5, []) for edge in edges)


async def test_one_edge_counts_what_waits_for_the_fleet(open_edge: OpenEdge) -> None:
    edges = [await open_edge({AP: Held()}) for _ in range(2)]
    await edges[0].registered(device())
    for edge in edges:
        await edge.dispatcher._count_waiting()
    assert sorted(edge.dispatcher.gauges()["push_waiting_apns_prod"] for edge in edges) == [0, 1]


async def test_a_push_continues_the_trace_of_its_nmsg(open_edge: OpenEdge) -> None:
    spans: list[tuple[str, Sequence[bytes]]] = []

    class Recording(Tracer):
        def start(self, name: str, parent: bytes | Span | None = None, links: Sequence[bytes] = ()) -> Span:
            spans.append((name, links))
            return NULL_SPAN

    edge = await open_edge({AP: Accepting()}, tracer=Recording())
    token = await edge.registered(device())
    push = await edge.store.pushes.claim(token)
    assert push is not None
    edge.dispatcher.offer(push, b"c" * 25)
    await until(lambda: edge.stats.ntfVrfDelivered == 1)
    assert spans == [("push", [b"c" * 25])]


def _only(edge: Edge) -> Callable[[], Awaitable[list[bytes]]]:
    async def live() -> list[bytes]:
        return [edge.store.edge]

    return live
