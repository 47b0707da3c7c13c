"""The client side of the notification router: sessions with the SMP servers that this replica owns.

Every tick, the replica reads who lives. When somebody came or went, when a server has no owner, and once in a while, it
also reads who owns what, and acts on its part of the plan (ownership.py): it takes servers, and hands servers over. The
word `servers` of the broadcast makes all replicas do that at once, e.g. when a replica leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from weir.client.dialling import Dialler
from weir.notifier.store.records import Event, OwnershipLostEvent, ServerMovedEvent, SubscribeEvent
from weir.notifier.store.store import Store
from weir.notifier.subscriber.ownership import Ownership, View
from weir.notifier.subscriber.session import Session
from weir.notifier.subscriber.settings import Dispatcher, Limits, SubscriberSettings
from weir.notifier.subscriber.shared import Shared
from weir.notifier.subscriber.state import ServerState, SubscriberStats, numbers
from weir.redis.errors import Unavailable
from weir.runtime.supervisor import Supervisor
from weir.telemetry.errors import log_mistake
from weir.telemetry.tracing import Tracer

_log = logging.getLogger(__name__)

TASK = "servers"
"""The word of the broadcast: look at the owners now. With `leaving`, that replica takes no servers any more."""

_ANSWERS = 1.0  # seconds that a broadcast waits for the other replicas
_TOGETHER = 64  # servers that are taken at the same time


class Subscriber:
    """`start` it when this edge has published itself; route `on_event` and `on_task` to it."""

    def __init__(
        self,
        store: Store,
        dispatcher: Dispatcher,
        settings: SubscriberSettings,
        *,
        stats: SubscriberStats | None = None,
        tracer: Tracer | None = None,
        limits: Limits | None = None,
        on_active: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        """`on_active` gets the ids of notifiers in use."""
        self.stats = stats or SubscriberStats()
        self._limits = limits = limits or Limits()
        self._store = store
        self._shared = Shared(
            store,
            dispatcher,
            Dialler(settings, allow_local=settings.allow_local_servers, timeout=limits.connect_timeout),
            self.stats,
            tracer or Tracer(),
            limits,
            use_service=settings.use_service_credentials,
            on_active=on_active,
            on_fenced=self._fenced,
        )
        self._ownership = Ownership(store.edge, settle=limits.settle, patience=limits.patience)
        self._first_seen: dict[bytes, float] = {}
        self._leaving: set[bytes] = set()
        self._sessions: dict[bytes, Session] = {}
        self._owning: set[bytes] = set()  # servers that this replica is about to own
        self._ending: dict[bytes, Session] = {}  # handed over, or lost; still reading
        self._look = asyncio.Event()
        self._look_until = 0.0
        self._next_look = 0.0  # when the owners are looked at again, if nothing happens
        self._draining = False
        self._announced = self._announcing = False
        self._background = Supervisor()
        self._tasks: set[asyncio.Task[None]] = set()
        self._published: dict[bytes, Mapping[str, str]] = {}

    async def start(self) -> None:
        self._background.run("the ownership of SMP servers", self._keep_looking)
        self._background.every("the publication of SMP servers", self._limits.publish, self._publish)

    async def drain(self) -> None:
        """Hand all servers over. Another replica owns them when this returns, or may own them."""
        self._draining = True
        self._leaving.add(self._store.edge)
        self.announce()
        await self._hand_over_all(linger=len(self._first_seen) > 1)

    async def close(self) -> None:
        """End all sessions. Without `drain`, the servers are released all the same."""
        self._draining = True
        await self._background.close()
        await self._hand_over_all(linger=False)

    # For the page and for metrics

    def servers(self) -> list[ServerState]:
        """The servers that this replica owns."""
        return [session.state for session in self._sessions.values()]

    def numbers(self) -> dict[str, int]:
        return numbers(self.servers())

    # From the store and from other replicas

    def on_event(self, event: Event) -> None:
        session = self._sessions.get(event.server_id)
        if session is None or session.owned.epoch != event.epoch:
            return
        if isinstance(event, SubscribeEvent):
            session.subscribe(event.sub_id)
        elif isinstance(event, ServerMovedEvent):
            session.moved()
        elif isinstance(event, OwnershipLostEvent):
            self._lose(event.server_id)

    async def on_task(self, task: Mapping[str, Any]) -> None:
        """A task of the broadcast with the word TASK."""
        leaving = task.get("leaving")
        if leaving:
            self._leaving.add(str(leaving).encode())
        self._next_look = 0.0
        self._look.set()

    def announce(self) -> None:
        """A server has no owner, e.g. because it is new or was released: all replicas look at the owners now."""
        self._announced = True
        if not self._announcing:
            self._announcing = True
            self._spawn(self._announce())

    async def _announce(self) -> None:
        """Ask until nothing was announced since the last time, so that many announcements cost few broadcasts."""
        try:
            while self._announced:
                self._announced = False
                leaving = self._store.edge.decode() if self._draining else ""
                with contextlib.suppress(Unavailable):
                    await self._store.broadcast.ask(_ANSWERS, do=TASK, leaving=leaving)
        finally:
            self._announcing = False

    # Ownership

    async def _keep_looking(self) -> None:
        while True:
            self._look.clear()
            with contextlib.suppress(Unavailable):
                await self._step()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.tick):
                    await self._look.wait()

    async def _step(self) -> None:
        """Raises Unavailable."""
        if self._draining:
            return
        now = asyncio.get_running_loop().time()
        if await self._see_replicas(now):
            self._look_until = now + self._limits.settle  # the leases of a replica expire one after the other
        if self._look_until <= now < self._next_look:
            return
        view = await self._view(now)
        me = self._store.edge
        for server_id in list(self._sessions):
            if view.owners.get(server_id) not in (me, None):
                self._lose(server_id)
        step = self._ownership.step(view, now)
        unowned = [
            server_id
            for server_id, owner in view.owners.items()
            if owner == me and server_id not in self._sessions and server_id not in self._ending
        ]  # a call that got no answer has made this replica the owner
        wanted = [*step.own, *unowned]
        for at in range(0, len(wanted), _TOGETHER):
            await asyncio.gather(*map(self._own, wanted[at : at + _TOGETHER]))
        for server_id in step.hand_over:
            session = self._sessions.get(server_id)
            if session is not None:
                self._spawn(self._hand_over(session))
        is_settled = not step.own and not step.hand_over and view.replicas.keys() >= set(view.owners.values())
        self._next_look = now + (self._limits.look if is_settled else 0.0)

    async def _see_replicas(self, now: float) -> bool:
        """Find out who lives. Return whether somebody came or went, so that the owners are looked at."""
        edges = {*await self._store.stats.live_edges(), self._store.edge}
        self._leaving &= edges
        live = edges - self._leaving
        changed = live != self._first_seen.keys()
        self._first_seen = {edge: self._first_seen.get(edge, now) for edge in live}
        return changed

    async def _view(self, now: float) -> View:
        servers = self._store.servers
        ids, owners = await asyncio.gather(servers.ids(), servers.owners())
        names = {server_id: edge.encode() for server_id, edge in owners.items()}
        return View(
            {edge: now - since for edge, since in self._first_seen.items()},
            {server_id: names.get(server_id) for server_id in ids},
        )

    async def _own(self, server_id: bytes) -> None:
        self._owning.add(server_id)
        try:
            epoch = await self._store.servers.own(server_id)
        finally:
            self._owning.discard(server_id)
        if epoch is None:
            return
        session = self._sessions.get(server_id)
        if session is None:
            self._sessions[server_id] = Session(self._shared, server_id, epoch)
        elif session.owned.epoch != epoch:
            session.owned_again(epoch)

    def _fenced(self, server_id: bytes) -> None:
        """A call of a session was refused. While this replica takes the server again, that is the reason."""
        if server_id not in self._owning:
            self._lose(server_id)

    def _lose(self, server_id: bytes) -> None:
        """Another replica owns the server. What was received still counts."""
        self._next_look = 0.0
        session = self._sessions.pop(server_id, None)
        if session is not None:
            self._published.pop(server_id, None)
            self._ending[server_id] = session
            self._spawn(self._end(session, session.lose()))

    async def _hand_over_all(self, *, linger: bool) -> None:
        await asyncio.gather(*(self._hand_over(one, linger=linger) for one in list(self._sessions.values())))
        await self._finish_tasks()

    async def _hand_over(self, session: Session, *, linger: bool = True) -> None:
        if self._sessions.get(session.owned.server_id) is session:
            del self._sessions[session.owned.server_id]
            self._published.pop(session.owned.server_id, None)
            self._ending[session.owned.server_id] = session
            await self._end(session, session.hand_over(self.announce, linger=linger))

    async def _end(self, session: Session, ending: Coroutine[Any, Any, None]) -> None:
        try:
            await ending
        finally:
            if self._ending.get(session.owned.server_id) is session:
                del self._ending[session.owned.server_id]

    # Background

    async def _publish(self) -> None:
        """Publish the states of own servers that have changed, for the pages of all replicas. Raises Unavailable."""
        for server_id, session in list(self._sessions.items()):
            if session.state.name:
                state = session.state.published()
                if self._published.get(server_id) != state:
                    await self._store.servers.set_state(server_id, state)
                    self._published[server_id] = state

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log_mistake(_log, "an SMP server was left uncleanly", error)

    async def _finish_tasks(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))
