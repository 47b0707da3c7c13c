"""Who changes things during a run: queues and services change hands, devices are cut off, queues are made, deleted and
rotated, and contact queues change what they hold. Deletions and changes come from connections of their own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from tests.faults.actors import Actor, Device, Holder, Sender
from tests.faults.clients import Client, Crowd, Outcome, Queue
from weir.crypto.keys import KeyPair, generate
from weir.wire.smp.commands import DEL, LDEL, LSET, NDEL, NKEY, RKEY, LinkData
from weir.wire.smp.replies import NID

_ROTATIONS = 8  # each brings one more sender


class Mover(Actor):
    """Until `finish`, makes one change after the other, several at a time."""

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
        self.senders: list[Sender] = []  # of new queues
        self._rotations = _ROTATIONS
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
            (2, self._rotate),
            (1, self._disconnect),
        ]
        weights = [weight for weight, _ in moves]
        while not self.stopping:
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

    def _rotate(self) -> None:
        if self._rotations:
            self._rotations -= 1
            device = self.crowd.rng.choice([*self.devices, self.holders[self.crowd.rng.randrange(2)]])
            self.spawn(self._replace_queue(device))

    async def _replace_queue(self, device: Device) -> None:
        """As apps rotate queues: a new one is made and used, and then an old one is deleted."""
        queue = await device.create()
        if queue is None:
            return
        sender = Sender(self.crowd, queue)
        sender.spawn(sender.run())
        self.senders.append(sender)
        if not device.service:
            self.queues.append(queue)  # devices take new queues from each other, too
        self._delete()
        if self.crowd.rng.random() < 0.5:
            self.mortal.append(queue)

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
        fields: dict[str, Any] = {"writes": what, "value": value, "may_fail": not queue.key_is_certain}
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
