"""Senders, receivers or the service of some pairs, as a process that may be killed at any moment.

`python -m tests.chaos.worker` reads one line of JSON from its standard input and works until the input ends (senders:
or until all is sent).
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from tests.chaos.journal import QUOTA, Attempt, Writer
from weir.client.errors import ClientError
from weir.client.smp import SmpClient
from weir.crypto.keys import KeyPair
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.errors import Simple
from weir.wire.smp import ids_hash
from weir.wire.smp.commands import ACK, SEND, SUB, SUBS, ServiceRole
from weir.wire.smp.message import RcvMsgBody, decrypt_message
from weir.wire.smp.replies import ALLS, END, ENDS, ERR, MSG, OK, SOK, SOKS

REPLY_LIMIT = 30.0
_PAUSE = 0.1
_SIZES = (40, 200, 4000, 15000)


@dataclass(frozen=True)
class PairKeys:
    """The keys that sender and receiver of a pair know."""

    number: int
    rcv_id: bytes
    snd_id: bytes
    rcv_key: KeyPair
    snd_key: KeyPair
    secret: bytes

    def to_json(self) -> dict[str, Any]:
        keys = (self.rcv_key.public, self.rcv_key.private, self.snd_key.public, self.snd_key.private)
        return {"number": self.number, "bytes": [b.hex() for b in (self.rcv_id, self.snd_id, self.secret, *keys)]}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> PairKeys:
        rcv_id, snd_id, secret, *keys = map(bytes.fromhex, raw["bytes"])
        pairs = [KeyPair("x25519", keys[0], keys[1]), KeyPair("x25519", keys[2], keys[3])]
        return cls(raw["number"], rcv_id, snd_id, pairs[0], pairs[1], secret)


class Worker:
    def __init__(self, order: dict[str, Any]) -> None:
        self.addresses = [SmpAddress.parse(text) for text in order["addresses"]]
        self.journal = Writer(Path(order["journal"]))
        self.rng = random.Random(order["seed"])
        self.total: int = order["total"]
        self.pairs = [PairKeys.from_json(raw) for raw in order["pairs"]]
        self.state: dict[str, list[int]] = order["state"]
        self.service: ServiceCredentials | None = None
        if order["kind"] == "serve":
            certificate, *key = map(bytes.fromhex, order["service"])
            self.service = ServiceCredentials(ServiceRole.MESSAGING, (certificate,), KeyPair("ed25519", *key))

    async def connect(self, edge: int, service: ServiceCredentials | None = None) -> SmpClient:
        """To this edge, or whichever can be reached."""
        while True:
            address = self.addresses[edge % len(self.addresses)]
            assert address is not None
            try:
                return await SmpClient.connect(address, service=service, reply_timeout=REPLY_LIMIT, timeout=10)
            except ConnectError:
                edge += 1
                await asyncio.sleep(_PAUSE * self.rng.random())

    # Senders

    async def send_all(self) -> None:
        await asyncio.gather(*(self._send(pair) for pair in self.pairs))

    async def _send(self, pair: PairKeys) -> None:
        n, a = self.state[str(pair.number)]
        client: SmpClient | None = None
        edge = self.rng.randrange(2)
        while n < self.total:
            if client is None or client.closed.is_set():
                client = await self.connect(edge)
            body = f"{n} {a} ".encode().ljust(self.rng.choice(_SIZES), b".")
            self.journal.write("T", pair.number, n, a)
            try:
                reply = await client.send(SEND(False, body), pair.snd_id, pair.snd_key)
            except ClientError:
                client.connection.abort()
                client = None
                edge, a = edge + 1, a + 1
                continue
            if reply == OK():
                self.journal.write("O", pair.number, n, a)
                n, a = n + 1, 0
            else:
                self.journal.write("Q" if reply == ERR(Simple.QUOTA) else "U", pair.number, n, a)
                a += 1
                await asyncio.sleep(_PAUSE)
        if client is not None:
            await client.close()

    # A service: one connection for all its pairs, which comes back with SUBS

    async def serve_all(self) -> None:
        subscription = max(self.state[str(pair.number)][0] for pair in self.pairs)
        edge = self.rng.randrange(2)
        expected = SOKS(len(self.pairs), ids_hash.of_ids(pair.rcv_id for pair in self.pairs))
        while True:
            client = await self.connect(edge, self.service)
            for pair in self.pairs:
                self.journal.write("S", pair.number, subscription)
            try:
                reply = await self._subs(client, expected)
                if reply == expected:
                    await self._serve(client, subscription)
                else:
                    assert reply == ERR(Simple.INTERNAL), reply
            except ClientError:
                pass
            client.connection.abort()
            edge += 1
            subscription += 1
            await asyncio.sleep(_PAUSE * self.rng.random())

    async def _subs(self, client: SmpClient, expected: SOKS) -> Any:
        service = client.connection.service
        assert service is not None
        return await client.send(SUBS(expected.count, expected.ids_hash), service.service_id, service.key_pair)

    async def _serve(self, client: SmpClient, subscription: int) -> None:
        """Until the connection ends: each queue's messages are acknowledged by a task of their own."""
        pairs = {pair.rcv_id: pair for pair in self.pairs}
        tasks: set[asyncio.Task[None]] = set()
        closed = asyncio.ensure_future(client.closed.wait())
        alls = 0
        try:
            while not client.closed.is_set():
                event = asyncio.ensure_future(client.events.get())
                await asyncio.wait((event, closed, *tasks), return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in tasks if task.done()]:
                    tasks.discard(task)
                    task.result()
                if not event.done():
                    event.cancel()
                    continue
                reply = event.result().reply
                if isinstance(reply, MSG):
                    pair = pairs[event.result().entity_id]
                    tasks.add(asyncio.ensure_future(self._acknowledge(client, pair, subscription, reply)))
                elif reply == ALLS():
                    alls += 1
                    assert alls == 1, "a second ALLS"
                else:
                    assert isinstance(reply, ENDS), reply
                    return
        finally:
            closed.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # Receivers

    async def receive_all(self) -> None:
        await asyncio.gather(*(self._receive(pair) for pair in self.pairs))

    async def _receive(self, pair: PairKeys) -> None:
        subscription = self.state[str(pair.number)][0]
        edge = self.rng.randrange(2)
        while True:
            client = await self.connect(edge)
            try:
                self.journal.write("S", pair.number, subscription)
                if await client.send(SUB(), pair.rcv_id, pair.rcv_key) in (SOK(), OK()):
                    await self._messages(client, pair, subscription)
            except ClientError:
                pass
            client.connection.abort()
            edge += 1
            subscription += 1
            await asyncio.sleep(_PAUSE * self.rng.random())

    async def _messages(self, client: SmpClient, pair: PairKeys, subscription: int) -> None:
        """Until the connection ends. Half of the pairs keep it when an ACK fails, the others come anew."""
        while True:
            event = asyncio.ensure_future(client.events.get())
            closed = asyncio.ensure_future(client.closed.wait())
            await asyncio.wait((event, closed), return_when=asyncio.FIRST_COMPLETED)
            closed.cancel()
            if not event.done():
                event.cancel()
                return
            reply: Any = event.result().reply
            if reply == END():
                return
            if isinstance(reply, MSG):
                await self._acknowledge(client, pair, subscription, reply)

    async def _acknowledge(self, client: SmpClient, pair: PairKeys, subscription: int, reply: Any) -> None:
        """A message, and those that come with the answers to its ACK. Raises ClientError to come anew."""
        while isinstance(reply, MSG):
            at = self._attempt(pair, reply)
            msg_id = reply.msg_id
            self.journal.write("M", pair.number, subscription, msg_id.hex(), *at)
            reply = await client.send(ACK(msg_id), pair.rcv_id, pair.rcv_key)
            failed = False
            while reply == ERR(Simple.INTERNAL):
                if pair.number % 2:
                    raise ClientError
                failed = True
                await asyncio.sleep(_PAUSE)
                reply = await client.send(ACK(msg_id), pair.rcv_id, pair.rcv_key)
            if reply == ERR(Simple.NO_MSG) and failed:
                reply = OK()  # the ACK that failed had been done; what follows comes by itself
            if reply == ERR(Simple.NO_MSG):
                self.journal.write("X", pair.number, subscription, msg_id.hex())
                return
            assert isinstance(reply, OK | MSG), reply
            self.journal.write("A", pair.number, subscription, msg_id.hex())

    def _attempt(self, pair: PairKeys, message: MSG) -> Attempt:
        body = decrypt_message(pair.secret, message.msg_id, message.body)
        assert body is not None, "it cannot be opened"
        if not isinstance(body, RcvMsgBody):
            return QUOTA
        n, a, _ = body.body.split(b" ", 2)
        return int(n), int(a)


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 22)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    order = json.loads(await reader.readline())
    worker = Worker(order)
    kinds = {"send": worker.send_all, "receive": worker.receive_all, "serve": worker.serve_all}
    work = asyncio.ensure_future(kinds[order["kind"]]())
    ended = asyncio.ensure_future(reader.read())
    await asyncio.wait((work, ended), return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        work.result()
    ended.cancel()


if __name__ == "__main__":
    uvloop.run(main())
