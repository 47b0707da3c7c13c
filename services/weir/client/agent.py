"""An agent for one router: it reconnects, and renews subscriptions after each reconnection.

A queue is `pending` until the router has accepted its subscription, then `active`. When the connection ends, active
queues become pending again. One task connects, subscribes to all pending queues, and waits for more work.

A service subscribes to all its queues with one SUBS. If the router does not know the service (it has another id,
refuses the certificate, or has lost the service's queues), the agent reports ServiceUnavailable and subscribes to the
queues one by one. Those SUBs associate the queues with the service again, if the session has one.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from weir.client.events import (
    AgentEvent,
    Connected,
    Deleted,
    Disconnected,
    Ended,
    Message,
    ServiceAll,
    ServiceDisconnected,
    ServiceEnded,
    ServiceFailed,
    ServiceUnavailable,
    Subscribed,
    SubscribeErrors,
)
from weir.client.reconnecting import Reconnecting, has_lost_queues, subscribe_service
from weir.client.smp import Answer, Request, ServiceSub, SmpClient
from weir.crypto.keys import KeyPair
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import NSUB, SUB, ServiceRole
from weir.wire.smp.replies import ALLS, DELD, END, ENDS, ERR, MSG, NMSG, OK, SOK
from weir.wire.smp.transmission import ServerTransmission

Queues = dict[bytes, KeyPair]


@dataclass(frozen=True)
class AgentConfig:
    """Times are in seconds. The pause between two attempts to connect doubles from `first_retry` to `max_retry`."""

    first_retry: float = 1.0
    max_retry: float = 10.0
    batch: int = 1360
    """The number of SUBs that wait for a reply at once."""
    ping_interval: float = 600.0
    """The time without work after which the agent sends PING; 0: never."""
    refused_after: float = 30.0
    """The time for which the router must refuse the service before the agent subscribes to its queues one by one."""
    connect: dict[str, Any] = field(default_factory=dict)
    """Options of `weir.transport.smp.connect`."""


class SmpAgent(Reconnecting):
    """Subscriptions to queues of one router, as recipient or (role NOTIFIER) as notifier.

    `service_queues` returns the queues of the service, for the case that they must be subscribed to one by one.
    Without it, the agent uses the queues that it has associated with the service itself.
    """

    def __init__(
        self,
        address: SmpAddress,
        on_event: Callable[[AgentEvent], None],
        *,
        role: ServiceRole = ServiceRole.MESSAGING,
        service: ServiceCredentials | None = None,
        service_queues: Callable[[], Awaitable[Iterable[tuple[bytes, KeyPair]]]] | None = None,
        config: AgentConfig | None = None,
    ) -> None:
        self.address = address
        self.config = config = config or AgentConfig()
        super().__init__(
            first_retry=config.first_retry,
            max_retry=config.max_retry,
            ping_interval=config.ping_interval,
            refused_after=config.refused_after,
        )
        self.active: Queues = {}
        self.pending: Queues = {}
        self.active_service: ServiceSub | None = None
        self.pending_service: ServiceSub | None = None
        self._notify = on_event
        self._role = role
        self._service = service
        self._load_service_queues = service_queues
        self._associated: Queues = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "SmpAgent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def subscribe(self, queues: Iterable[tuple[bytes, KeyPair]]) -> None:
        """Subscribe to queues now and after every reconnection.

        A subscription ends with `forget`, with an error from the router, or when another client subscribes.
        """
        self.pending.update(queues)
        self._wake_worker()

    def subscribe_service(self, expected: ServiceSub) -> None:
        """Subscribe to all queues of the service now and after every reconnection."""
        self.pending_service = expected
        self._wake_worker()

    def forget(self, queue_ids: Iterable[bytes]) -> None:
        """Stop renewing the subscriptions of these queues. The router is not notified."""
        for queue_id in queue_ids:
            self.active.pop(queue_id, None)
            self.pending.pop(queue_id, None)
            self._associated.pop(queue_id, None)

    async def close(self) -> None:
        self._closing = True
        self._wake.set()
        if self.client is not None:
            self.client.connection.close()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    # The worker task

    def _wake_worker(self) -> None:
        self._wake.set()
        if self._task is None and not self._closing:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _open(self) -> SmpClient:
        return await SmpClient.connect(self.address, service=self._service, **self.config.connect)

    async def _service_refused(self) -> bool:
        if self._service is None:
            return False
        self._service = None
        await self._service_unavailable()
        return True

    def _on_connected(self, client: SmpClient) -> None:
        client.on_event = self._on_event
        self._notify(Connected(client.service_id))

    async def _work(self, client: SmpClient) -> None:
        if self.pending_service is not None:
            await self._subscribe_service(client, self.pending_service)
        while self.pending:
            ids = list(self.pending)[: self.config.batch]
            await self._subscribe_queues(client, {queue_id: self.pending[queue_id] for queue_id in ids})

    def _on_disconnected(self) -> None:
        if self.active_service is not None:
            service, self.active_service = self.active_service, None
            self.pending_service = self.pending_service or service
            self._notify(ServiceDisconnected(service))
        if self.active:
            active, self.active = self.active, {}
            self.pending = active | self.pending
            self._notify(Disconnected(tuple(active)))

    # Subscribing

    async def _subscribe_service(self, client: SmpClient, expected: ServiceSub) -> None:
        result = await subscribe_service(client, self._role, expected)
        if isinstance(result, ServiceUnavailable):
            await self._service_unavailable()
            return
        self.pending_service = None
        self._notify(result)
        if isinstance(result, ServiceFailed):
            return
        self.active_service = result.subscribed
        if has_lost_queues(result):
            await self._service_unavailable(expected)

    async def _service_unavailable(self, expected: ServiceSub | None = None) -> None:
        """Give up the service's subscription: its queues become pending one by one."""
        expected = expected or self.pending_service
        if expected is None:
            return
        # The owner's storage may fail. The agent then connects again, and the service is still pending.
        queues = self._associated if self._load_service_queues is None else await self._load_service_queues()
        self.pending.update(queues)
        self.pending_service = None
        self._associated = {}
        self._notify(ServiceUnavailable(expected))

    async def _subscribe_queues(self, client: SmpClient, queues: Queues) -> None:
        command = NSUB() if self._role is ServiceRole.NOTIFIER else SUB()
        answers = await client.send_many([Request(command, queue_id, key) for queue_id, key in queues.items()])
        single: list[bytes] = []
        associated: list[bytes] = []
        errors: list[tuple[bytes, Answer]] = []
        for (queue_id, key), answer in zip(queues.items(), answers, strict=True):
            if self.pending.pop(queue_id, None) is None:
                continue  # `forget` was called while the SUB waited
            if isinstance(answer, SOK) and answer.service_id is not None and answer.service_id == client.service_id:
                self._associated[queue_id] = key
                associated.append(queue_id)
            elif isinstance(answer, OK | SOK | MSG):
                self.active[queue_id] = key
                single.append(queue_id)
                if isinstance(answer, MSG):
                    self._notify(Message(ServerTransmission(b"", queue_id, answer)))
            else:
                errors.append((queue_id, answer))
        if single:
            self._notify(Subscribed(None, tuple(single)))
        if associated:
            self._add_to_service(client, associated)
            self._notify(Subscribed(client.service_id, tuple(associated)))
        if errors:
            self._notify(SubscribeErrors(tuple(errors)))

    def _add_to_service(self, client: SmpClient, queue_ids: list[bytes]) -> None:
        assert client.service_id is not None
        count, total = len(queue_ids), ids_hash.of_ids(queue_ids)
        active = self.active_service
        if active is not None and active.service_id == client.service_id:
            count, total = count + active.count, ids_hash.add(total, active.ids_hash)
        self.active_service = ServiceSub(client.service_id, count, total)

    # Events of the router

    def _on_event(self, event: ServerTransmission) -> None:
        reply, queue_id = event.reply, event.entity_id
        if isinstance(reply, MSG | NMSG):
            self._notify(Message(event))
        elif isinstance(reply, END):
            self.active.pop(queue_id, None)
            self._associated.pop(queue_id, None)
            self._notify(Ended(queue_id))
        elif isinstance(reply, DELD):
            self.forget((queue_id,))
            self._notify(Deleted(queue_id))
        elif isinstance(reply, ENDS):
            ended, self.active_service = self.active_service, None
            self._notify(ServiceEnded(ServiceSub(queue_id, reply.count, reply.ids_hash), ended))
        elif isinstance(reply, ALLS):
            self._notify(ServiceAll())
        elif isinstance(reply, ERR):
            self._notify(SubscribeErrors(((queue_id, reply),)))
