"""The end of a run: all works again, beliefs are probed, and what the router keeps is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from time import monotonic
from typing import Any

from tests.faults.actors import Device, Holder, send
from tests.faults.checker import check
from tests.faults.clients import Client, Crowd, Queue
from weir.client.errors import ClientError
from weir.crypto.keys import KeyPair
from weir.wire.errors import Simple
from weir.wire.smp.commands import ACK, LGET, NSUB, PING, QUE, SUB, SUBS
from weir.wire.smp.replies import ERR, INFO, LNK, MSG, PONG, SOK, SOKS

_WORKS_AGAIN = 40.0  # seconds; Sentinel takes 10 for a second fail-over
# An inbox is drained every 5 s even if nobody says that something is in it.
_SETTLES = 10.0
_STEP = 0.5
_DRAIN = 15.0


class Finish:
    def __init__(self, crowd: Crowd, devices: Sequence[Device], holders: Sequence[Holder]) -> None:
        self._crowd = crowd
        self._devices: list[Device] = [*devices, *holders]

    async def everything_works(self) -> None:
        """Each edge answers commands that need Redis."""
        try:
            async with asyncio.timeout(_WORKS_AGAIN):
                for edge in range(len(self._crowd.addresses)):
                    for queue in self._crowd.queues:
                        await self._known(queue, edge)
        except TimeoutError:
            raise RuntimeError(f"an edge does not answer {_WORKS_AGAIN:g} s after all was mended") from None

    async def _known(self, queue: Queue, edge: int | None = None) -> bool:
        """Whether the queue exists. Asks until there is an answer."""
        while True:
            async with self._crowd.connected(edge=edge) as client:
                exists = await self._exists(client, queue)
            if exists is not None:
                return exists
            await asyncio.sleep(_STEP)

    async def _exists(self, client: Client, queue: Queue) -> bool | None:
        """None: no answer. An unanswered change of the key leaves open which of the keys is right."""
        for key in reversed([*queue.rcv_keys.values()]):  # keys are added meanwhile
            try:
                reply = await client.smp.send(QUE(), queue.rcv_id, key)
            except ClientError:
                return None
            if isinstance(reply, INFO):
                queue.rcv_key = key
                return True
            if reply != ERR(Simple.AUTH):
                return None
        return False

    async def settle(self) -> None:
        """Wait until what was under way has arrived, send probes, and wait for these."""
        crowd, history = self._crowd, self._crowd.history
        for queue in crowd.queues:
            history.write("exists", queue=queue.number, exists=await self._known(queue))
        for device in self._devices:
            if device.client is not None:
                await self._ping(device.client)
        await self._until_right("rested")
        async with crowd.connected() as client:
            for queue in crowd.queues:
                await send(crowd, client, queue, probe=True)
        await self._until_right("settled")

    async def _until_right(self, name: str) -> None:
        """Wait until the checker finds nothing, or for the longest time that it may take."""
        history = self._crowd.history
        end = monotonic() + _SETTLES
        while monotonic() < end and check([*history.lines, {"is": name}]):
            await asyncio.sleep(_STEP)
        history.write(name)

    async def _ping(self, client: Client) -> None:
        try:
            reply = await client.smp.send(PING(), timeout=10.0)
        except ClientError:
            client.abort()
            return
        assert reply == PONG(), reply
        self._crowd.history.write("alive", conn=client.number)

    async def read(self) -> None:
        """All clients have stopped. Take what is left in the queues, and read what they hold."""
        crowd = self._crowd
        for client in crowd.clients:
            if client.is_open:
                await client.close()
        for service in crowd.services:
            await self._read_totals(service)
        for queue in crowd.queues:
            async with crowd.connected() as client:
                if await self._exists(client, queue):
                    await self._read_held(client, queue)
                    await self._drain(client, queue)
        crowd.history.write("drained")

    async def _read_totals(self, service: str) -> None:
        async with self._crowd.connected(service) as client:
            session = client.smp.connection.service
            assert session is not None
            outcome = await client.call("SUBS", None, SUBS(0, bytes(16)), session.service_id, session.key_pair)
            assert isinstance(outcome.reply, SOKS), outcome
            totals = outcome.reply
            self._crowd.history.write("totals", service=service, count=totals.count, hash=totals.ids_hash.hex())

    async def _drain(self, client: Client, queue: Queue) -> None:
        """Subscribe, and acknowledge until the queue is empty."""
        try:
            async with asyncio.timeout(_DRAIN):
                await self._empty(client, queue)
        except TimeoutError:
            raise RuntimeError(f"queue {queue.number} cannot be emptied in {_DRAIN:g} s") from None

    async def _empty(self, client: Client, queue: Queue) -> None:
        arrived: asyncio.Queue[MSG] = asyncio.Queue()
        client.on_message = lambda _queue, message: arrived.put_nowait(message)
        outcome = await client.call("SUB", queue, SUB(), queue.rcv_id, queue.rcv_key)
        assert outcome.result == "ok", outcome
        message = outcome.reply if isinstance(outcome.reply, MSG) else None
        while message is not None or await self._size(client, queue):
            message = message or await arrived.get()
            fields: dict[str, Any] = {"message": message.msg_id.hex()}
            ack = ACK(message.msg_id)
            outcome = await client.call("ACK", queue, ack, queue.rcv_id, queue.rcv_key, **fields)
            message = outcome.reply if isinstance(outcome.reply, MSG) else None

    async def _size(self, client: Client, queue: Queue) -> int:
        reply = await client.smp.send(QUE(), queue.rcv_id, queue.rcv_key)
        assert isinstance(reply, INFO), reply
        size: int = json.loads(reply.json)["qiSize"]
        return size

    async def _read_held(self, client: Client, queue: Queue) -> None:
        """The key, the notifier and the link. A notifier whose NKEY got no answer is known to nobody."""
        history, smp = self._crowd.history, client.smp
        for name, key in queue.rcv_keys.items():
            if isinstance(await smp.send(QUE(), queue.rcv_id, key), INFO):
                history.write("holds", queue=queue.number, what="key", value=name)
        for name, (ntf_id, ntf_key) in queue.notifiers.items():
            if isinstance(await self._nsub(client, ntf_id, ntf_key), SOK):
                history.write("holds", queue=queue.number, what="notifier", value=name)
        link = await smp.send(LGET(), queue.link_id)
        value = link.data.user.decode() if isinstance(link, LNK) else ""
        history.write("holds", queue=queue.number, what="link", value=value)

    async def _nsub(self, client: Client, ntf_id: bytes, key: KeyPair) -> object:
        return await client.smp.send(NSUB(), ntf_id, key)
