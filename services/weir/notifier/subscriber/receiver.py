"""Events of one SMP server on their way into the store: NMSG, END and DELD.

An SMP server forgets a notification when it has sent it, so a notification that was received is kept here until the
store has it. While the store fails, events wait in order and are tried again. When too many wait, the connection is not
read from, and the SMP server keeps the rest. A push provider that is slow never holds up anything here: its pushes wait
in the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from time import time

from weir.client.reconnecting import Pauses
from weir.notifier.store.records import Fenced, Status
from weir.notifier.subscriber.shared import Owned, Shared
from weir.redis.errors import Unavailable
from weir.telemetry.errors import log_mistake
from weir.telemetry.tracing import Span
from weir.wire.ntf.types import PushProvider
from weir.wire.smp.replies import NMSG

_log = logging.getLogger(__name__)

Job = Callable[[bool], Awaitable[object]]
"""Stores an event. The argument says whether the store has failed it before."""


class Receiver:
    """`pause` and `resume` stop and continue reading from the SMP server."""

    def __init__(
        self,
        shared: Shared,
        owned: Owned,
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        on_fenced: Callable[[], None],
    ) -> None:
        limits = shared.limits
        self._shared = shared
        self._owned = owned
        self._pause = pause
        self._resume = resume
        self._on_fenced = on_fenced
        self._most = limits.waiting
        self._pauses = Pauses(limits.store_retry, limits.max_store_retry)
        self._working: set[asyncio.Task[None]] = set()
        self._failed: deque[Job] = deque()
        self._retrying: asyncio.Task[None] | None = None
        self.paused = False

    @property
    def waiting(self) -> int:
        """Events that the store has not taken yet."""
        return len(self._working) + len(self._failed)

    def notification(self, notifier_id: bytes, message: NMSG) -> None:
        now = time()
        self._owned.state.last_notification = now
        span = self._shared.tracer.sample_notification("NMSG", message.nonce)
        claim_id = self._shared.store.notifications.new_claim()
        self._start(partial(self._store_notification, notifier_id, message, now, claim_id, span))

    def ended(self, notifier_id: bytes, is_current: Callable[[], bool]) -> None:
        """END. It counts if it comes from the current session (behaviour 5), also when it had to wait."""
        epoch = self._owned.epoch

        async def end(_again: bool) -> None:
            if is_current():
                await self._shared.store.servers.ended(self._owned.server_id, epoch, notifier_id)

        self._start(end)

    def deleted(self, notifier_id: bytes) -> None:
        """DELD of any session."""
        self._start(lambda _again: self._shared.store.servers.deleted(self._owned.server_id, notifier_id))

    async def idle(self) -> None:
        """Wait until the store has everything."""
        while self._working or self._failed:
            tasks: set[asyncio.Task[None]] = set(self._working)
            if self._retrying is not None:
                tasks.add(self._retrying)
            await asyncio.wait(tasks)

    def abandon(self) -> None:
        """Give up what waits: the process ends."""
        self._failed.clear()
        for task in (*self._working, *((self._retrying,) if self._retrying else ())):
            task.cancel()

    async def _store_notification(
        self, notifier_id: bytes, message: NMSG, at: float, claim_id: bytes, span: Span, again: bool
    ) -> None:
        room = [provider for provider in PushProvider if self._shared.dispatcher.room(provider)]
        received = await self._shared.store.notifications.received(
            self._owned.server_id,
            notifier_id,
            message.nonce,
            message.meta,
            int(at),
            room,
            claim_id=claim_id,
            again=again,
        )
        stats, name = self._shared.stats, self._owned.state.name
        if received.status is Status.OK:
            stats.ntfReceived += 1
            if name:
                stats.ntfReceivedOwn[name] = stats.ntfReceivedOwn.get(name, 0) + 1
            self._shared.on_active(notifier_id)
        else:  # behaviour 22
            stats.ntfReceivedAuth += 1
            if name:
                stats.ntfReceivedAuthOwn[name] = stats.ntfReceivedAuthOwn.get(name, 0) + 1
        if span.recording:
            span.set("result", received.status.name)
        if received.push is not None:
            self._shared.dispatcher.offer(received.push, span.context(), at)
        span.end()

    def _start(self, job: Job) -> None:
        if self._failed:
            self._failed.append(job)  # behind those that wait, so that the newest notification stays the newest
        else:
            task = asyncio.get_running_loop().create_task(self._try(job))
            self._working.add(task)
            task.add_done_callback(self._done)
        if not self.paused and self.waiting > self._most:
            self.paused = True
            self._pause()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        self._continue()

    def _continue(self) -> None:
        if self.paused and self.waiting <= self._most // 2:
            self.paused = False
            self._resume()

    async def _try(self, job: Job) -> None:
        try:
            await self._run(job, again=False)
        except Unavailable:
            self._failed.append(job)
            if self._retrying is None or self._retrying.done():
                self._retrying = asyncio.get_running_loop().create_task(self._retry())

    async def _run(self, job: Job, *, again: bool) -> None:
        """Raises Unavailable."""
        try:
            await job(again)
        except Unavailable:
            raise
        except Fenced:
            self._on_fenced()
        except Exception as error:
            log_mistake(_log, "an event of an SMP server could not be stored", error)

    async def _retry(self) -> None:
        """Try the events that the store has failed, one after the other, until none is left."""
        while self._failed:
            await asyncio.sleep(self._pauses.next())
            while self._failed:
                try:
                    await self._run(self._failed[0], again=True)
                except Unavailable:
                    break
                self._failed.popleft()
                self._pauses.reset()
                self._continue()
