"""A small agent on one router: it keeps subscriptions alive over reconnections, and a service's in one command.

When the service is not what the router remembers (another id, refused, or without its queues), the agent does not wait
for a miracle: it tells its owner and subscribes queue by queue, which associates the queues anew where it can.
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
    ServiceSubscribed,
    ServiceUnavailable,
    Subscribed,
    SubscribeErrors,
    mismatch,
)
from weir.client.smp import Answer, ClientError, Request, ServiceSub, SmpClient, Unexpected
from weir.client.smp import ServiceUnavailable as NoService
from weir.crypto.keys import KeyPair
from weir.transport.client import ConnectError
from weir.transport.handshake import ServiceCredentials
from weir.wire import ids_hash
from weir.wire.address import SmpAddress
from weir.wire.commands import NSUB, SUB, ServiceRole
from weir.wire.errors import HandshakeError
from weir.wire.replies import ALLS, DELD, END, ENDS, ERR, MSG, NMSG, OK, SOK
from weir.wire.transmission import ServerTransmission

_SERVICE_REFUSED = (HandshakeError.BAD_SERVICE, HandshakeError.BAD_AUTH)

Queues = dict[bytes, KeyPair]


@dataclass(frozen=True)
class AgentConfig:
    first_retry: float = 1.0
    max_retry: float = 10.0
    batch: int = 1360  # SUBs under way at once
    ping_interval: float = 600.0  # PING after so much silence; 0: never
    connect: dict[str, Any] = field(default_factory=dict)  # options of transport.client.connect


class SmpAgent:
    """One router's subscriptions, of recipients or (role NOTIFIER) of notifiers.

    `service_queues` gives the queues of the service when they must be subscribed one by one; without it the agent uses
    those it has associated itself.
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
        self.config = config or AgentConfig()
        self.client: SmpClient | None = None
        self.active: Queues = {}
        self.pending: Queues = {}
        self.active_service: ServiceSub | None = None
        self.pending_service: ServiceSub | None = None
        self._notify = on_event
        self._role = role
        self._service = service
        self._load_service_queues = service_queues
        self._associated: Queues = {}
        self._wake = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "SmpAgent":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def subscribe(self, queues: Iterable[tuple[bytes, KeyPair]]) -> None:
        """Subscribe now and after every reconnection, until `forget`, an error of the router's, or another client."""
        self.pending.update(queues)
        self._work()

    def subscribe_service(self, expected: ServiceSub) -> None:
        self.pending_service = expected
        self._work()

    def forget(self, queue_ids: Iterable[bytes]) -> None:
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

    # The one worker

    def _work(self) -> None:
        self._wake.set()
        if self._task is None and not self._closing:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        retry = self.config.first_retry
        while not self._closing:
            try:
                client = await SmpClient.connect(self.address, service=self._service, **self.config.connect)
            except ConnectError as error:
                if self._service is not None and error.error in _SERVICE_REFUSED:
                    self._service = None
                    await self._service_unavailable()
                    continue
                await asyncio.sleep(retry)
                retry = min(retry * 2, self.config.max_retry)
                continue
            retry = self.config.first_retry
            await self._session(client)

    async def _session(self, client: SmpClient) -> None:
        self.client = client
        client.on_event = self._on_event
        client.on_close = self._wake.set
        self._notify(Connected(client.service_id))
        try:
            while not client.closed.is_set():
                self._wake.clear()
                await self._subscribe_pending(client)
                await self._rest(client)
        except ClientError:
            client.connection.abort()  # it no longer answers
            await client.closed.wait()
        finally:
            client.connection.close()
            if not self._closing:
                self._down()

    async def _rest(self, client: SmpClient) -> None:
        """Until there is work; a connection that is silent for long must show that it lives."""
        interval = self.config.ping_interval or None
        while not self._wake.is_set():
            try:
                async with asyncio.timeout(interval):
                    await self._wake.wait()
            except TimeoutError:
                await client.ping()

    def _down(self) -> None:
        self.client = None
        if self.active_service is not None:
            service, self.active_service = self.active_service, None
            self.pending_service = self.pending_service or service
            self._notify(ServiceDisconnected(service))
        if self.active:
            active, self.active = self.active, {}
            self.pending = active | self.pending
            self._notify(Disconnected(tuple(active)))

    # Subscribing

    async def _subscribe_pending(self, client: SmpClient) -> None:
        if self.pending_service is not None:
            await self._subscribe_service(client, self.pending_service)
        while self.pending:
            ids = list(self.pending)[: self.config.batch]
            await self._subscribe_queues(client, {queue_id: self.pending[queue_id] for queue_id in ids})

    async def _subscribe_service(self, client: SmpClient, expected: ServiceSub) -> None:
        if client.service_id != expected.service_id:
            await self._service_unavailable()
            return
        try:
            subscribed = await client.subscribe_service(self._role, expected.count, expected.ids_hash)
        except NoService:
            await self._service_unavailable()
            return
        except Unexpected as error:
            self.pending_service = None
            self._notify(ServiceFailed(expected, error.reply))
            return
        self.pending_service = None
        self.active_service = subscribed
        self._notify(ServiceSubscribed(expected, subscribed, mismatch(expected, subscribed)))
        if expected.count > 0 and subscribed.count == 0:
            await self._service_unavailable(expected)

    async def _service_unavailable(self, expected: ServiceSub | None = None) -> None:
        """Nothing of the service may stay pending: its queues become pending one by one."""
        expected = expected or self.pending_service
        self.pending_service = None
        if expected is None:
            return
        self._notify(ServiceUnavailable(expected))
        if self._load_service_queues is not None:
            self.pending.update(await self._load_service_queues())
        else:
            self.pending.update(self._associated)
        self._associated = {}

    async def _subscribe_queues(self, client: SmpClient, queues: Queues) -> None:
        command = NSUB() if self._role is ServiceRole.NOTIFIER else SUB()
        answers = await client.send_many([Request(command, queue_id, key) for queue_id, key in queues.items()])
        alone: list[bytes] = []
        served: list[bytes] = []
        errors: list[tuple[bytes, Answer]] = []
        for (queue_id, key), answer in zip(queues.items(), answers, strict=True):
            if self.pending.pop(queue_id, None) is None:
                continue  # forgotten meanwhile
            if isinstance(answer, SOK) and answer.service_id is not None and answer.service_id == client.service_id:
                self._associated[queue_id] = key
                served.append(queue_id)
            elif isinstance(answer, OK | SOK | MSG):
                self.active[queue_id] = key
                alone.append(queue_id)
                if isinstance(answer, MSG):
                    self._notify(Message(ServerTransmission(b"", queue_id, answer)))
            else:
                errors.append((queue_id, answer))
        if alone:
            self._notify(Subscribed(None, tuple(alone)))
        if served:
            self._add_to_service(client, served)
            self._notify(Subscribed(client.service_id, tuple(served)))
        if errors:
            self._notify(SubscribeErrors(tuple(errors)))

    def _add_to_service(self, client: SmpClient, queue_ids: list[bytes]) -> None:
        assert client.service_id is not None
        count, total = len(queue_ids), ids_hash.of_ids(queue_ids)
        active = self.active_service
        if active is not None and active.service_id == client.service_id:
            count, total = count + active.count, ids_hash.add(total, active.ids_hash)
        self.active_service = ServiceSub(client.service_id, count, total)

    # What the router says by itself

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
