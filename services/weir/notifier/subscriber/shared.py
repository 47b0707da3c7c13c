"""The parts that all sessions of a replica share, and the identity of a server that the replica owns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

from weir.client.dialling import Dialler
from weir.client.reconnecting import Pauses
from weir.notifier.store.store import Store
from weir.notifier.subscriber.budget import Budget
from weir.notifier.subscriber.settings import Dispatcher, Limits
from weir.notifier.subscriber.state import ServerState, SubscriberStats
from weir.redis.errors import Unavailable
from weir.telemetry.tracing import Tracer

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass
class Shared:
    store: Store
    dispatcher: Dispatcher
    dialler: Dialler
    stats: SubscriberStats
    tracer: Tracer
    limits: Limits
    use_service: bool
    on_active: Callable[[bytes], None]
    """Called with the notifiers in use."""
    on_fenced: Callable[[bytes], None]
    """Called with a server that another replica owns."""
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        self.budget = Budget(self.limits.subscriptions)


@dataclass
class Owned:
    """A server that this replica owns."""

    server_id: bytes
    epoch: int
    store_pauses: Pauses
    state: ServerState = field(default_factory=ServerState)

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call until the store answers. Raises Fenced."""
        while True:
            try:
                result = await call()
            except Unavailable:
                await asyncio.sleep(self.store_pauses.next())
            else:
                self.store_pauses.reset()
                return result

    def log(self, level: int, text: str) -> None:
        """Only the operator's own servers are named."""
        _log.log(level, "SMP server%s: %s", f" {self.state.name}" if self.state.name else "", text)
