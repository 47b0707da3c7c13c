"""Who works during a run: devices, services, readers, senders, and one mover who makes them change.

Devices take queues from each other and reconnect as an app does: what they were subscribed to is subscribed again.
Two holders have the same certificate and take the service from each other. Readers use GET. The mover also deletes
queues and changes what queues hold; its commands come from connections of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.faults.clients import Client, Crowd, Outcome, Queue
from weir.crypto.keys import KeyPair, generate
from weir.wire.smp.commands import ACK, DEL, GET, LDEL, LSET, NDEL, NKEY, RKEY, SEND, SUB, SUBS, LinkData
from weir.wire.smp.replies import MSG, NID

_RETRY = 0.3
_SIZES = (16, 16, 16, 200, 15000)


class Actor:
    """Works until it is stopped; a crash of its work is raised by `stop`."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._failed = task.exception()

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

    async def _acknowledge(self, client: Client, queue: Queue, message: MSG | None) -> None:
        """A message, and those that come as answers to its ACK."""
        while message is not None:
            await self.pause(0.05)
            ack = ACK(message.msg_id)
            fields = {"message": message.msg_id.hex()}
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
                        fields = {"message": message.hex()}
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


class Mover(Actor):
    """Lets queues and services change hands, cuts devices off, deletes queues, and changes what contact queues hold."""

    def __init__(
        self,
        crowd: Crowd,
        devices: list[Device],
        holders: list[Holder],
        queues: list[Queue],
        spare: list[Queue],
        contacts: list[Queue],
        mortal: list[Queue],
    ) -> None:
        """`spare` queues may join the service, `mortal` ones are deleted one after the other."""
        super().__init__(crowd)
        self.devices, self.holders = devices, holders
        self.queues, self.spare, self.contacts, self.mortal = queues, spare, contacts, mortal
        self._busy: set[int] = set()  # contact queues with a command under way

    async def run(self) -> None:
        rng = self.crowd.rng
        moves: list[tuple[int, Callable[[], None]]] = [
            (6, lambda: rng.choice(self.devices).take(rng.choice(self.queues))),
            (2, lambda: rng.choice(self.holders).take_service()),
            (2, self._join),
            (4, self._delete),
            (3, self._change),
            (1, self._disconnect),
        ]
        weights = [weight for weight, _ in moves]
        while True:
            await self.pause(0.25)
            (_, move), *_ = rng.choices(moves, weights)
            move()

    def _join(self) -> None:
        if self.spare:
            self.crowd.rng.choice(self.holders).join(self.spare.pop())

    def _disconnect(self) -> None:
        device = self.crowd.rng.choice([*self.devices, *self.holders])
        if device.client is not None:
            device.client.abort()

    def _delete(self) -> None:
        if self.mortal:
            self.spawn(self._delete_queue(self.mortal.pop()))

    async def _delete_queue(self, queue: Queue) -> None:
        """One DEL. Half of those without an answer are repeated."""
        while True:
            async with self.crowd.connected() as client:
                outcome = await client.call("DEL", queue, DEL(), queue.rcv_id, queue.rcv_key)
            if outcome.result != "unknown" or self.crowd.rng.random() < 0.5:
                return

    def _change(self) -> None:
        free = [queue for queue in self.contacts if queue.number not in self._busy]
        if free:
            queue = self.crowd.rng.choice(free)
            change = self.crowd.rng.choice([self._set_key, self._set_notifier, self._drop_notifier, self._set_link])
            self.spawn(self._alone(queue, change))

    async def _alone(self, queue: Queue, change: Callable[[Client, Queue], Coroutine[Any, Any, None]]) -> None:
        self._busy.add(queue.number)
        try:
            async with self.crowd.connected() as client:
                await change(client, queue)
        finally:
            self._busy.discard(queue.number)

    async def _write(self, client: Client, queue: Queue, name: str, command: Any, what: str, value: str) -> Outcome:
        fields = {"writes": what, "value": value, "may_fail": not queue.key_is_certain}
        return await client.call(name, queue, command, queue.rcv_id, queue.rcv_key, **fields)

    async def _set_key(self, client: Client, queue: Queue) -> None:
        key: KeyPair = generate("x25519")
        value = f"key {next(self.crowd.values)}"
        queue.rcv_keys[value] = key
        outcome = await self._write(client, queue, "RKEY", RKEY((key.spki,)), "key", value)
        if outcome.result == "ok":
            queue.rcv_key = key
        elif outcome.result == "unknown":
            queue.key_is_certain = False

    async def _set_notifier(self, client: Client, queue: Queue) -> None:
        key, dh_key = generate("x25519"), generate("x25519")
        value = f"notifier {next(self.crowd.values)}"
        outcome = await self._write(client, queue, "NKEY", NKEY(key.spki, dh_key.public), "notifier", value)
        if isinstance(outcome.reply, NID):
            queue.notifiers[value] = outcome.reply.ntf_id, key

    async def _drop_notifier(self, client: Client, queue: Queue) -> None:
        await self._write(client, queue, "NDEL", NDEL(), "notifier", "")

    async def _set_link(self, client: Client, queue: Queue) -> None:
        if self.crowd.rng.random() < 0.3:
            await self._write(client, queue, "LDEL", LDEL(), "link", "")
            return
        value = f"link {next(self.crowd.values)}"
        command = LSET(queue.link_id, LinkData(b"fixed", value.encode()))
        await self._write(client, queue, "LSET", command, "link", value)
