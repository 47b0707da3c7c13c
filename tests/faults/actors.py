"""Who works during a run: devices, services, readers and senders. A mover (mover.py) makes them change.

Devices take queues from each other and reconnect as an app does: what they were subscribed to is subscribed again.
Two holders have the same certificate and take the service from each other. Readers use GET.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.faults.clients import Client, Crowd, Draft, Outcome, Queue
from weir.client.smp import Answer
from weir.wire.smp.commands import ACK, GET, KEY, SEND, SUB, SUBS
from weir.wire.smp.replies import IDS, MSG

_RETRY = 0.3
_FINISH_LIMIT = 30.0
_SIZES = (16, 16, 16, 200, 15000)


class Actor:
    """Works until it is stopped; a crash of its work is raised by `stop`."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self.stopping = False

    async def run(self) -> None:
        raise NotImplementedError

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = task.exception()

    async def finish(self) -> None:
        """Begin nothing new, and wait for what is under way."""
        self.stopping = True
        async with asyncio.timeout(_FINISH_LIMIT):
            while self._tasks:
                await asyncio.wait(self._tasks)
        await self.stop()

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failed is not None:
            raise self._failed

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.crowd.rng.random() * longest)


class Device(Actor):
    """Holds one connection at a time, is subscribed to the queues that it was given, and acknowledges messages."""

    service = ""

    def __init__(self, crowd: Crowd) -> None:
        super().__init__(crowd)
        self.wanted: dict[int, Queue] = {}
        self.client: Client | None = None

    async def run(self) -> None:
        while True:
            client = self.client = await self.crowd.connect(self.service)
            client.on_message = lambda queue, message, client=client: self.spawn(  # type: ignore[misc]
                self._acknowledge(client, queue, message)
            )
            client.on_end = lambda queue: self._ended(queue)
            client.on_ends = self._service_ended
            self._connected(client)
            await client.smp.closed.wait()
            self.client = None
            await self.pause(_RETRY)

    def _connected(self, client: Client) -> None:
        for queue in list(self.wanted.values()):
            self.spawn(self._subscribe(client, queue))

    def _ended(self, queue: Queue) -> None:
        self.wanted.pop(queue.number, None)

    def _service_ended(self) -> None:
        pass

    def take(self, queue: Queue) -> None:
        """Subscribe, also if another device is subscribed."""
        self.wanted[queue.number] = queue
        if self.client is not None:
            self.spawn(self._subscribe(self.client, queue))

    async def _subscribe(self, client: Client, queue: Queue) -> None:
        def wanted() -> bool:
            return queue.number in self.wanted

        outcome = await self._until_answered(client, "SUB", queue, SUB(), wanted)
        if outcome.result == "refused":
            self.wanted.pop(queue.number, None)
        elif isinstance(outcome.reply, MSG):
            await self._acknowledge(client, queue, outcome.reply)

    async def _until_answered(
        self, client: Client, name: str, queue: Queue, command: SUB | ACK, wanted: Callable[[], bool], **fields: Any
    ) -> Outcome:
        outcome = Outcome("unknown", None)
        while client.is_open and wanted():
            outcome = await client.call(name, queue, command, queue.rcv_id, queue.rcv_key, **fields)
            if outcome.result != "unknown":
                break
            await self.pause(_RETRY)
        return outcome

    async def create(self) -> Queue | None:
        """Make a queue. Half of the NEWs without an answer are repeated; of the others nobody knows the queue."""
        return await self._create(Draft(self.crowd, repeatable=self.crowd.rng.random() < 0.5))

    async def _create(self, draft: Draft) -> Queue | None:
        made: list[Queue] = []
        while True:
            if (client := self.client) is None:
                await self.pause(_RETRY)
                continue

            def on_ok(ids: Answer, op: int, client: Client = client) -> None:
                assert isinstance(ids, IDS), ids
                made.append(draft.made(self.crowd, ids, client, op))
                self._created(made[0])

            outcome = await client.call("NEW", None, draft.command, b"", draft.key, corr_id=draft.corr_id, on_ok=on_ok)
            if made:  # also when the answer came in the moment in which the call was given up
                break
            if outcome.result == "refused" or draft.corr_id is None:
                return None
            await self.pause(_RETRY)
        (queue,) = made
        await self._secure(queue, draft)
        return queue

    async def _secure(self, queue: Queue, draft: Draft) -> None:
        """Set the sender's key."""
        while True:
            async with self.crowd.connected() as client:
                outcome = await client.call("KEY", queue, KEY(draft.snd_key.spki), queue.rcv_id, queue.rcv_key)
            if outcome.result != "unknown":
                return
            await self.pause(_RETRY)

    def _created(self, queue: Queue) -> None:
        self.wanted[queue.number] = queue

    async def _acknowledge(self, client: Client, queue: Queue, message: MSG | None) -> None:
        """A message, and those that come as answers to its ACK."""
        while message is not None:
            await self.pause(0.05)
            ack = ACK(message.msg_id)
            fields: dict[str, Any] = {"message": message.msg_id.hex()}
            outcome = await self._until_answered(client, "ACK", queue, ack, lambda: True, **fields)
            message = outcome.reply if isinstance(outcome.reply, MSG) else None


class Holder(Device):
    """A device with the service's certificate: SUBS brings it all queues of the service."""

    def __init__(self, crowd: Crowd, service: str) -> None:
        super().__init__(crowd)
        self.service = service
        self.wants_service = False

    def _connected(self, client: Client) -> None:
        if self.wants_service:
            self.spawn(self._subscribe_service(client))

    def _service_ended(self) -> None:
        self.wants_service = False

    def take_service(self) -> None:
        self.wants_service = True
        if self.client is not None:
            self.spawn(self._subscribe_service(self.client))

    async def _subscribe_service(self, client: Client) -> None:
        session = client.smp.connection.service
        assert session is not None
        command = SUBS(0, bytes(16))  # the router answers with what is true
        while client.is_open and self.wants_service:
            outcome = await client.call("SUBS", None, command, session.service_id, session.key_pair)
            if outcome.result != "unknown":
                return
            await self.pause(_RETRY)

    async def create(self) -> Queue | None:
        """Make a queue of the service. Every NEW without an answer is repeated, so that the totals can be computed."""
        queue = await self._create(Draft(self.crowd, repeatable=True))
        if not self.wants_service:
            self.take_service()  # NEW took the service from the other holder, and brings no waiting messages
        return queue

    def _created(self, queue: Queue) -> None:
        pass

    def join(self, queue: Queue) -> None:
        """The queue belongs to the service from now on."""
        if self.client is not None:
            self.spawn(self._join(self.client, queue))

    async def _join(self, client: Client, queue: Queue) -> None:
        outcome = await client.call("SUB", queue, SUB(), queue.rcv_id, queue.rcv_key)
        if outcome.result == "ok" and not self.wants_service:
            self.take_service()  # SUB took the service from the other holder, and brings no waiting messages
        if isinstance(outcome.reply, MSG):
            await self._acknowledge(client, queue, outcome.reply)


class Reader(Actor):
    """Fetches the messages of a queue with GET."""

    def __init__(self, crowd: Crowd, queue: Queue) -> None:
        super().__init__(crowd)
        self.queue = queue

    async def run(self) -> None:
        queue = self.queue
        while True:
            async with self.crowd.connected() as client:
                while client.is_open:
                    got = await client.call("GET", queue, GET(), queue.rcv_id, queue.rcv_key)
                    if isinstance(got.reply, MSG):
                        message = got.reply.msg_id
                        fields: dict[str, Any] = {"message": message.hex()}
                        await client.call("ACK", queue, ACK(message), queue.rcv_id, queue.rcv_key, **fields)
                    else:
                        await self.pause(0.3)
            await self.pause(_RETRY)


class Sender(Actor):
    """Sends numbered messages, each once: a SEND without an answer is not repeated."""

    def __init__(self, crowd: Crowd, queue: Queue) -> None:
        super().__init__(crowd)
        self.queue = queue

    async def run(self) -> None:
        while True:
            async with self.crowd.connected() as client:
                while client.is_open:
                    outcome = await send(self.crowd, client, self.queue)
                    if outcome.result == "refused":
                        return  # the queue is deleted
                    await self.pause(0.5)
            await self.pause(_RETRY)


async def send(crowd: Crowd, client: Client, queue: Queue, **fields: Any) -> Outcome:
    value = next(crowd.values)
    body = (b"%d " % value).ljust(crowd.rng.choice(_SIZES), b".")
    return await client.call("SEND", queue, SEND(False, body), queue.snd_id, queue.snd_key, value=value, **fields)
