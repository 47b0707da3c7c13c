"""Sends pushes: those that the edge has just claimed, and those that wait in Redis.

    NMSG, TNEW, TRPL ── offer ──┐
                                ├──► slots of the provider ──► provider.send ──► pushes.done ──► the token's next push
    due pushes in Redis ────────┘         (bounded)

Nothing waits in memory: a push is in progress, or its claim is given back and the push waits in Redis. So a provider
that is slow or down holds up nobody but itself, and a killed edge leaves claims that expire.

- A provider has a number of slots. A lane (one push server) has a part of them: a slow server leaves slots to others.
- A token has one push in progress. What comes meanwhile is in the token's next push, which `done` claims. While others
  found no slot, that next push waits its turn in Redis, so a busy token cannot keep a slot.
- Edges share the partitions (rendezvous hashing over live edges) and look for due pushes in their own. Edges that
  disagree for a moment do no harm: a push is claimed by one.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping
from time import monotonic, time
from typing import Any, Final

from weir.notifier.config import Push as PushSettings
from weir.notifier.outcome import Delivered, Failed, Invalid, Outcome, RetryLater
from weir.notifier.push.provider import Provider
from weir.notifier.stats import Stats
from weir.notifier.store.records import Push, PushKind
from weir.notifier.store.store import Store
from weir.notifier.subscriber.ownership import ranking
from weir.redis.errors import Unavailable
from weir.redis.partitions import PARTITIONS
from weir.runtime.supervisor import Supervisor
from weir.telemetry.errors import log_mistake
from weir.telemetry.tracing import NULL_SPAN, NULL_TRACER, Tracer
from weir.wire.address import ServerHost
from weir.wire.ntf.types import PushProvider

_log = logging.getLogger(__name__)

# Seconds.
INTERVAL: Final = 1.0  # between two searches for due pushes
_BUSY: Final = 0.02  # while there were any
_COUNT_INTERVAL: Final = 5.0
_CLOSE: Final = 10.0  # for pushes in progress when the edge stops
_FULL: Final = 0.5  # a push without a slot waits in Redis for so long, and at most for twice as long
_LANE_FULL: Final = 3.0
_NO_PROVIDER: Final = 60.0
_STORE_PAUSES: Final = (0.1, 0.5, 2.0)  # between attempts to store an outcome

_LANES: Final = 8  # a lane gets one slot in so many
_OUTCOMES: Final = {Delivered: "delivered", Invalid: "invalid", RetryLater: "retry", Failed: "failed"}


class _Slots:
    """A provider, and its pushes in progress."""

    def __init__(self, provider: Provider, most: int) -> None:
        self.provider = provider
        self.most = most
        self.most_in_lane = max(most // _LANES, 1)
        self.used = 0
        self.lanes: Counter[str] = Counter()
        self.crowded = False
        """Whether a push found no slot lately."""

    @property
    def free(self) -> int:
        return max(self.most - self.used, 0)

    def take(self, lane: str) -> None:
        self.used += 1
        if lane:
            self.lanes[lane] += 1

    def give(self, lane: str) -> None:
        self.used -= 1
        if lane:
            self.lanes[lane] -= 1
            if not self.lanes[lane]:
                del self.lanes[lane]


class Dispatcher:
    """`own_name` names one of the operator's own SMP servers, and returns an empty text for all others."""

    def __init__(
        self,
        store: Store,
        providers: Mapping[PushProvider, Provider],
        stats: Stats,
        settings: PushSettings,
        *,
        tracer: Tracer = NULL_TRACER,
        own_name: Callable[[ServerHost], str] = lambda _: "",
    ) -> None:
        self._store = store
        self._slots = {name: _Slots(provider, settings.queue) for name, provider in providers.items()}
        self._stats = stats
        self._limit = settings.timeout
        self._tracer = tracer
        self._own_name = own_name
        self._background = Supervisor()
        self._tasks: set[asyncio.Task[None]] = set()
        self._tokens: set[bytes] = set()  # with a push in progress here
        self._waiting: dict[PushProvider, int] = {}
        self._closing = False

    async def start(self) -> None:
        self._background.run("pushes that are due", self._take_due)
        self._background.every("the count of waiting pushes", _COUNT_INTERVAL, self._count_waiting, at_once=True)

    async def close(self) -> None:
        """Let pushes in progress end, and give the others back."""
        self._closing = True
        await self._background.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.gather(*(slots.provider.close() for slots in self._slots.values()))

    def room(self, provider: PushProvider) -> bool:
        """Whether a push of this provider may be claimed and offered."""
        slots = self._slots.get(provider)
        if slots is None or self._closing or slots.provider.paused() > 0:
            return False
        if slots.free == 0:
            slots.crowded = True
            return False
        return True

    def offer(self, push: Push, context: bytes = b"", received: float = 0.0) -> None:
        """Send a push that this edge has claimed, or give its claim back.

        `context` is that of the NMSG's trace, and `received` the Unix time of the NMSG, if one has just come.
        """
        slots = self._slots.get(push.token.device.provider)
        if slots is None:
            self._give_back_later(push, _NO_PROVIDER)
        elif self._closing:
            self._give_back_later(push, 0.0)
        elif push.token.id in self._tokens:
            self._give_back_later(push, _spread(_FULL))
        elif slots.free == 0:
            slots.crowded = True
            self._give_back_later(push, _spread(_FULL))
        elif slots.lanes[lane := slots.provider.lane(push)] >= slots.most_in_lane:
            self._give_back_later(push, _spread(_LANE_FULL))
        else:
            slots.take(lane)
            self._tokens.add(push.token.id)
            self._spawn(self._send(slots, lane, push, context, received))

    @property
    def waiting(self) -> int:
        """Pushes that wait in Redis, as one edge of the fleet counts them."""
        return sum(self._waiting.values())

    def gauges(self) -> dict[str, int]:
        numbers = {"pushes_in_flight": sum(slots.used for slots in self._slots.values())}
        for name, slots in self._slots.items():
            provider = name.name.lower()
            for gauge, value in slots.provider.numbers().items():
                numbers[f"push_{gauge}_{provider}"] = value
            numbers[f"push_in_flight_{provider}"] = slots.used
            numbers[f"push_waiting_{provider}"] = self._waiting.get(name, 0)
        return numbers

    # One push after another, of one token.

    async def _send(self, slots: _Slots, lane: str, push: Push, context: bytes, received: float) -> None:
        current: Push | None = push
        try:
            while current is not None:
                current = await self._send_one(slots, current, context, received)
                context, received = b"", 0.0  # the next push is not only of that NMSG
                if current is not None and (slots.crowded or self._closing):
                    await self._give_back(current, 0.0)
                    current = None
        finally:
            slots.give(lane)
            self._tokens.discard(push.token.id)

    async def _send_one(self, slots: _Slots, push: Push, context: bytes, received: float) -> Push | None:
        """Return the token's next push, which the store has claimed for this edge."""
        wait = slots.provider.wait(push)
        if wait > 0:
            name = push.token.device.provider.name.lower()
            self._stats.pushLimited[name] = self._stats.pushLimited.get(name, 0) + 1
            await self._give_back(push, _spread(wait))
            return None
        span = self._tracer.start("push", links=[context]) if context else NULL_SPAN
        started = monotonic()
        try:
            async with asyncio.timeout(self._limit):
                outcome = await slots.provider.send(push)
        except TimeoutError:
            outcome = RetryLater()
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(push, 0.0))
            raise
        except Exception as error:
            log_mistake(_log, "a push failed", error)
            outcome = RetryLater()
        result = _OUTCOMES[type(outcome)]
        self._count(push, outcome, monotonic() - started)
        if received and not isinstance(outcome, RetryLater):
            self._stats.notified(push.token.device.provider, time() - received)
        span.set("result", result)
        span.end(None if isinstance(outcome, Delivered) else result)
        return await self._done(push, outcome)

    async def _done(self, push: Push, outcome: Outcome) -> Push | None:
        """Store an outcome. If Redis stays away, the claim expires and the push is sent again: late, and twice."""
        for pause in (*_STORE_PAUSES, None):
            try:
                return await self._store.pushes.done(push, outcome)
            except Unavailable:
                if pause is not None:
                    await asyncio.sleep(pause)
        return None

    def _count(self, push: Push, outcome: Outcome, seconds: float) -> None:
        """Count in the reference's counters, and in those of the provider. Nothing is counted for the null provider
        (behaviour 4). A push that is repeated later is counted when its outcome is known."""
        provider, stats = push.token.device.provider, self._stats
        stats.pushed(provider, _OUTCOMES[type(outcome)], seconds)
        if isinstance(outcome, RetryLater):
            return
        delivered = isinstance(outcome, Delivered)
        match push.kind:
            case PushKind.MESSAGES:
                stats.count(provider, "ntfDelivered" if delivered else "ntfFailed")
                own = self._own_name(push.messages[-1].queue.server) if push.messages else ""
                if own:
                    stats.own(own, "ntfDelivered" if delivered else "ntfFailed")
            case PushKind.CHECK:
                stats.count(provider, "ntfCronDelivered" if delivered else "ntfCronFailed")
            case PushKind.VERIFICATION if isinstance(outcome, Invalid):
                stats.count(provider, "ntfVrfInvalidTkn")
            case PushKind.VERIFICATION:
                stats.count(provider, "ntfVrfDelivered" if delivered else "ntfVrfFailed")

    # Back to Redis.

    def _give_back_later(self, push: Push, after: float) -> None:
        self._spawn(self._give_back(push, after))

    async def _give_back(self, push: Push, after: float) -> None:
        try:
            await self._store.pushes.give_back(push, after)
        except Unavailable:
            _log.debug("a claim was not given back: it expires")

    # Due pushes.

    async def _take_due(self) -> None:
        while True:
            try:
                taken = await self._take_due_once()
            except Unavailable:
                taken = 0
            await asyncio.sleep(_BUSY if taken else INTERVAL)

    async def _take_due_once(self) -> int:
        """Claim due pushes in this edge's partitions while there are slots. Return how many were claimed."""
        for slots in self._slots.values():
            slots.crowded = slots.free == 0
        live = await self._store.stats.live_edges()
        partitions = [p for p in range(PARTITIONS) if self._is_responsible(p, live)]
        random.shuffle(partitions)  # while slots are scarce, no partition is always the last one
        taken = 0
        for p in partitions:
            room = {name: slots.free for name, slots in self._slots.items() if self.room(name)}
            if not room:
                break
            for push in await self._store.pushes.due(p, room):
                self.offer(push)
                taken += 1
        return taken

    def _is_responsible(self, partition: int, live: Collection[bytes]) -> bool:
        """Whether this edge ranks first for the partition. An edge that is not listed yet looks everywhere."""
        return self._store.edge not in live or ranking(b"%d" % partition, live)[0] == self._store.edge

    async def _count_waiting(self) -> None:
        """Count for the whole fleet, on one edge: the gauges of the edges are added up."""
        live = await self._store.stats.live_edges()
        self._waiting = await self._store.pushes.waiting() if live and min(live) == self._store.edge else {}

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_mistake(_log, "a push failed, its claim expires", error)


def _spread(seconds: float) -> float:
    """Between `seconds` and twice as many, so that what waits together does not come back together."""
    return seconds * (1.0 + random.random())
