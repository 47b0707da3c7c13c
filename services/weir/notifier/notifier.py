"""Shared by all sessions of one edge: the store, the counters, and the way to the push services."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from weir.notifier.config import NotifierConfig
from weir.notifier.session.session import Session
from weir.notifier.stats import Active, Stats
from weir.redis.errors import Unavailable
from weir.runtime.answers import Answers
from weir.runtime.turns import Turns
from weir.telemetry.errors import log_mistake
from weir.telemetry.tracing import NULL_TRACER, Tracer
from weir.wire.ntf.types import DECLARATIONS, PushProvider

if TYPE_CHECKING:
    from weir.notifier.store.records import Push, Subscription, Token
    from weir.notifier.store.store import Store
    from weir.transport.ntf import NtfConnection

_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Sends pushes (weir.notifier.push)."""

    def room(self, provider: PushProvider) -> bool: ...
    def offer(self, push: Push) -> object: ...


class Shared:
    """The sessions of one edge, and the things that they share."""

    def __init__(
        self,
        config: NotifierConfig,
        store: Store,
        stats: Stats,
        providers: Collection[PushProvider],
        dispatcher: Dispatcher,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        """`providers` are those whose tokens this router takes."""
        self.config = config
        self.store = store
        self.stats = stats
        self.answers = Answers(DECLARATIONS)
        self.tracer = tracer
        self.loop = asyncio.get_running_loop()
        self.turns = Turns(self.loop)
        self.active = Active()
        self.clients: dict[int, Session] = {}  # by the connection's id
        self.on_unowned: Callable[[bytes], None] = lambda _server_id: None
        """Called for an SMP server with a new subscription that no edge owns yet."""
        self._providers = frozenset(providers)
        self._dispatcher = dispatcher
        self._tasks: set[asyncio.Task[None]] = set()

    # Sessions.

    def on_session(self, conn: NtfConnection) -> Session:
        session = Session(self, conn)
        self.clients[session.id] = session
        return session

    def on_closed(self, session: Session) -> None:
        self.clients.pop(session.id, None)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_mistake(_log, "a command failed", error)

    # For commands.

    async def fetch_token(self, token_id: bytes) -> Token | None:
        token = await self.store.tokens.fetch(token_id)
        if token is None:
            self.store.dummies.token()
        else:
            self.active.tokens.add(token_id)
        return token

    async def fetch_subscription(self, sub_id: bytes) -> tuple[Subscription, Token] | None:
        found = await self.store.subscriptions.fetch(sub_id)
        if found is None:
            self.store.dummies.subscription()
        return found

    def takes(self, provider: PushProvider) -> bool:
        """Whether this router has what it needs to push to tokens of this provider."""
        return provider in self._providers

    def push_verification(self, token: Token) -> None:
        """Push the code of a token whose verification push is due."""
        self.stats.count(token.device.provider, "ntfVrfQueued")
        if self._dispatcher.room(token.device.provider):  # or else the push waits in Redis
            self.spawn(self._push(token))

    async def _push(self, token: Token) -> None:
        try:
            push = await self.store.pushes.claim(token)
        except Unavailable:
            return  # the push is due: an edge takes it up later
        if push is not None:
            self._dispatcher.offer(push)

    # For the edge.

    def gauges(self) -> dict[str, int]:
        return {"clients": len(self.clients)}

    async def close(self) -> None:
        """Wait for commands in progress, but no longer than for an answer of Redis."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self.config.redis.command_timeout)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
