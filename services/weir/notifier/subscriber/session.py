"""The session with one SMP server that this replica owns.

    connected ──► service: NSUBS with count and hash ──► walk: NSUB for the rest, page by page ──► wait
                    │ unavailable: associations removed,                ▲                            │
                    └─ connect again, then queue by queue               └── SNEW · retry ◄───────────┘

- The store knows the subscriptions. The session keeps none: those that the service covers cost nothing, the others are
  read in pages and forgotten when they are answered.
- A failure of the store is waited for. It ends neither the session nor the process.
- Fenced: another replica owns the server now. The session ends without changing anything; notifications that it has
  received still count.
- Hand-over: the walk stops, what was received is stored, the server is released, and the session goes on reading until
  the next owner has subscribed (ENDS) or a while has passed. So there is no moment in which nobody is subscribed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from time import time

from weir.client.events import ServiceFailed, ServiceSubscribed
from weir.client.reconnecting import Pauses, Reconnecting, has_lost_queues, subscribe_service
from weir.client.smp import ServiceSub, SmpClient
from weir.notifier.store.records import Fenced
from weir.notifier.subscriber.connector import Connector
from weir.notifier.subscriber.queues import Queues
from weir.notifier.subscriber.receiver import Receiver
from weir.notifier.subscriber.shared import Owned, Shared
from weir.redis.errors import Unavailable
from weir.transport.client import ConnectError
from weir.wire.smp.commands import ServiceRole
from weir.wire.smp.replies import DELD, END, ENDS, NMSG
from weir.wire.smp.transmission import ServerTransmission


class Session(Reconnecting):
    def __init__(self, shared: Shared, server_id: bytes, epoch: int) -> None:
        limits = shared.limits
        super().__init__(
            first_retry=limits.first_retry,
            max_retry=limits.max_retry,
            ping_interval=limits.ping_interval,
            refused_after=limits.refused_after,
        )
        self.owned = Owned(server_id, epoch, Pauses(limits.store_retry, limits.max_store_retry))
        self.state = self.owned.state
        self._shared = shared
        self._servers = shared.store.servers
        self._limits = limits
        self._connector = Connector(shared, self.owned)
        self._receiver = Receiver(
            shared,
            self.owned,
            pause=self._pause_reading,
            resume=self._resume_reading,
            on_fenced=self._fenced,
        )
        self._queues = Queues(
            shared,
            self.owned,
            is_over=lambda client: self._stopping or client.connection.closing,
            is_paused=lambda: self._receiver.paused,
        )
        self._has_answered = False
        self._service_due = False
        self._walk_due = False
        self._walk_planned = False  # a timer will make a walk due
        self._without_service = False  # until a connection has ended: the server refuses new certificates, too
        self._disconnecting: asyncio.Task[None] | None = None
        self._stopping = False
        self._working = asyncio.Lock()
        self._taken_over = asyncio.Event()
        self._service_pauses = Pauses(limits.first_retry, limits.max_walk_retry)
        self._walk_pauses = Pauses(limits.first_walk_retry, limits.max_walk_retry)
        self._timers: set[asyncio.TimerHandle] = set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    # From outside

    def subscribe(self, sub_id: bytes) -> None:
        """SNEW has made a subscription. Without a connection, the next walk finds it."""
        if self._stopping:
            return
        if self.client is None:
            self._hurry.set()
            return
        if not self._queues.add(sub_id):
            self._walk_due = True
        self._wake.set()

    def moved(self) -> None:
        """The server may have another address."""
        self._connector.moved()
        self.hurry()

    def owned_again(self, epoch: int) -> None:
        """The ownership lapsed and this replica has it again: everything is subscribed to anew."""
        self.owned.epoch = epoch
        self._service_due = self._walk_due = True
        self._wake.set()

    async def hand_over(self, on_released: Callable[[], None], *, linger: bool = True) -> None:
        """Release the server so that nothing is missed in between. Without other replicas, `linger` is of no use."""
        self._stopping = self._closing = True
        self.hurry()
        grace = self._limits.grace
        try:
            async with asyncio.timeout(grace), self._working:
                pass  # no NSUB may be on its way: it would take the queue from the next owner
        except TimeoutError:
            if self.client is not None:
                self.client.connection.abort()
        await self._idle(grace)
        with contextlib.suppress(Unavailable, Fenced):
            await self._servers.release(self.owned.server_id, self.owned.epoch)
        on_released()
        await (self._linger() if linger else self.close())

    async def lose(self) -> None:
        """Another replica owns the server. What was sent to this one before still counts."""
        self._stopping = self._closing = True
        self.hurry()
        await self._linger()

    async def _linger(self) -> None:
        """Read until the next owner has subscribed to everything, or for a while. Then close."""
        if self.client is not None and self.state.count:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.grace):
                    await self._taken_over.wait()
        await self.close()

    async def close(self) -> None:
        """End the session. What was received is stored before, if the store answers in time."""
        self._stopping = self._closing = True
        for timer in self._timers:
            timer.cancel()
        self._wake.set()
        self.hurry()
        if self.client is not None:
            self.client.connection.close()
        await self._idle(self._limits.grace)
        self._receiver.abandon()
        tasks = [task for task in (self._task, self._disconnecting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _idle(self, limit: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await self._receiver.idle()

    def _fenced(self) -> None:
        if not self._stopping:
            self._shared.on_fenced(self.owned.server_id)

    # Connecting

    async def _connect_and_work(self) -> None:
        try:
            await super()._connect_and_work()
        except Fenced:
            self._fenced()
            await self._pause()

    async def _open(self) -> SmpClient:
        while not await self._is_needed():
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.ping_interval):
                    await self._hurry.wait()
        return await self._connector.open(as_service=self._shared.use_service and not self._without_service)

    async def _service_refused(self) -> bool:
        """Try once with a new certificate, and then without one until a connection has ended."""
        if not self._shared.use_service or self._without_service:
            return False
        server = self._connector.server
        if server is not None and server.service_id is not None:
            await self.owned.patiently(lambda: self._unavailable("the server refuses it"))
        else:
            self._without_service = True
        return True

    def _on_failed(self, error: ConnectError) -> None:
        self.state.problem = error.error.value
        server, limits = self._connector.server, self._limits
        is_known = self._has_answered or (server is not None and server.service_id is not None)
        self._pauses.longest = limits.max_retry if is_known else limits.max_unknown_retry

    def _on_connected(self, client: SmpClient) -> None:
        client.on_event = partial(self._on_event, client)
        self._has_answered = True
        self._service_due = self._walk_due = True
        self._queues.forget_new()
        self._taken_over.clear()
        self._receiver.paused = False
        self.state.connect(client.service_id is not None)

    def _on_disconnected(self) -> None:
        self.state.disconnect()
        self._without_service = False
        self._queues.forget_new()
        if not self._stopping:
            self._disconnecting = asyncio.get_running_loop().create_task(self._store_disconnected())

    async def _store_disconnected(self) -> None:
        with contextlib.suppress(Fenced):
            await self.owned.patiently(lambda: self._servers.disconnected(self.owned.server_id, self.owned.epoch))

    async def _is_needed(self) -> bool:
        """Whether the server has subscriptions. Anybody's SNEW makes a server known."""
        totals = await self.owned.patiently(lambda: self._servers.totals(self.owned.server_id))
        self.state.needed = bool(totals.count or totals.pending)
        return self.state.needed

    async def _ping(self, client: SmpClient) -> None:
        if self._receiver.paused:
            return  # the answer would not be read
        if await self._is_needed():
            await super()._ping(client)
        else:
            client.connection.close()

    def _pause_reading(self) -> None:
        if self.client is not None:
            self.client.connection.pause_reading()

    def _resume_reading(self) -> None:
        if self.client is not None:
            self.client.connection.resume_reading()

    # Subscribing

    async def _work(self, client: SmpClient) -> None:
        if self._stopping:
            return
        async with self._working:
            try:
                await self._subscribe(client)
            except Unavailable:
                self._later(self.owned.store_pauses.next(), self._wake.set)
            except Fenced:
                self._fenced()
            else:
                self.owned.store_pauses.reset()

    async def _subscribe(self, client: SmpClient) -> None:
        """Raises Unavailable, Fenced and ClientError."""
        if self._disconnecting is not None:
            await self._disconnecting  # the end of the last session comes before the beginning of this one
        if self._service_due:
            self._service_due = not await self._subscribe_service(client)
        if await self._queues.subscribe_new(client):
            self._walk_later()
        if self._walk_due and not client.connection.closing:
            await self._walk(client)
        if self.state.since is None and not (self._service_due or self._walk_due or client.connection.closing):
            self.state.since = time()

    async def _subscribe_service(self, client: SmpClient) -> bool:
        """Subscribe to what is associated with the service. Return False if that has to be tried again."""
        server, service_id, state = self._connector.server, client.service_id, self.state
        assert server is not None
        if service_id is None:
            if server.service_id is not None:
                await self._unavailable("the session is not a service's")
            return True
        if not await self._servers.is_owner(self.owned.server_id, self.owned.epoch):
            raise Fenced  # or else NSUBS would take the service from the owner
        changed = await self._servers.set_service(self.owned.server_id, self.owned.epoch, service_id)
        if changed and server.service_id is not None:
            self.owned.log(logging.WARNING, "service unavailable: it has another id")
        totals = await self._servers.totals(self.owned.server_id)
        state.drift = 0
        if totals.count:
            expected = ServiceSub(service_id, totals.count, totals.ids_hash)
            state.service_pending = totals.count
            result = await subscribe_service(client, ServiceRole.NOTIFIER, expected)
            if isinstance(result, ServiceFailed):
                pause = self._service_pauses.next()
                self.owned.log(logging.WARNING, f"the service's subscription failed, trying again in {pause:.0f} s")
                self._later(pause, self._wake.set)
                return False
            if not isinstance(result, ServiceSubscribed) or has_lost_queues(result):
                # With a new certificate the server makes a new service, so that what it remembers of this one is void.
                await self._unavailable("the server does not know the service or its queues")
                client.connection.close()
                return True
            state.drift = result.subscribed.count - expected.count
            if result.mismatch is not None:  # behaviour 18: nothing else is done about it
                self.owned.log(logging.WARNING, f"the service's subscription differs: {result.mismatch.value}")
            state.service_active = result.subscribed.count
        self._service_pauses.reset()
        await self._servers.session_up(self.owned.server_id, self.owned.epoch)
        state.service_pending = 0
        return True

    async def _unavailable(self, why: str) -> None:
        """Behaviour 7."""
        self.owned.log(logging.WARNING, f"service unavailable: {why}")
        await self._servers.remove_service(self.owned.server_id, self.owned.epoch)
        self.state.service_pending = 0
        await self._connector.refresh()

    async def _walk(self, client: SmpClient) -> None:
        self._walk_due = False
        try:
            left = await self._queues.walk(client)
        except BaseException:
            self._walk_due = True
            raise
        if left is None:
            return
        if left:
            self._walk_later()
        else:
            self._walk_pauses.reset()

    def _walk_later(self) -> None:
        def walk() -> None:
            self._walk_planned = False
            self._walk_due = True
            self._wake.set()

        if not self._walk_planned:
            self._walk_planned = True
            self._later(self._walk_pauses.next(), walk)

    # Events

    def _on_event(self, client: SmpClient, event: ServerTransmission) -> None:
        reply = event.reply
        if isinstance(reply, NMSG):
            self._receiver.notification(event.entity_id, reply)
        elif isinstance(reply, DELD):
            self._on_gone(event.entity_id)
            self._receiver.deleted(event.entity_id)
        elif isinstance(reply, END):
            self._on_gone(event.entity_id)
            self._receiver.ended(event.entity_id, lambda: self.client is client)
        elif isinstance(reply, ENDS) and self.client is client:
            self._on_service_ended()

    def _on_gone(self, notifier_id: bytes) -> None:
        self._queues.on_gone(notifier_id)
        state = self.state
        if state.service_active:
            state.service_active -= 1
        elif state.queues_active:
            state.queues_active -= 1
        if not state.count:
            self._taken_over.set()

    def _on_service_ended(self) -> None:
        """Another client took over the service: the next owner, or an earlier one that does not know yet."""
        state = self.state
        state.service_pending, state.service_active, state.since = state.service_active, 0, None
        if not state.count:
            self._taken_over.set()
        if self._stopping:
            return

        def subscribe() -> None:
            self._service_due = True
            self._wake.set()

        # `session_up` raises Fenced if the client is the next owner.
        self._later(self._limits.first_retry, subscribe)

    # Helpers

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        def run() -> None:
            self._timers.discard(timer)
            call()

        timer = asyncio.get_running_loop().call_later(seconds, run)
        self._timers.add(timer)
