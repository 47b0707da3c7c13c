"""Connections whose commands and events are written to the history, at the moment at which they are sent or arrive."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha3_384
from typing import NamedTuple

from tests.faults.history import Writer
from weir.client.base import CLOSED
from weir.client.errors import ClientError
from weir.client.smp import Answer, SmpClient
from weir.crypto.keys import KeyPair, dh, generate
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials
from weir.wire.address import SmpAddress
from weir.wire.errors import Simple
from weir.wire.smp.commands import KEY, NEW, Command, ContactReq, LinkData, MessagingReq
from weir.wire.smp.message import RcvMsgBody, decrypt_message
from weir.wire.smp.replies import ALLS, DELD, END, ENDS, ERR, IDS, MSG, OK
from weir.wire.smp.transmission import ServerTransmission

ANSWER_LIMIT = 4.0  # seconds; a client that waits longer gives up its connection
_CONNECT_LIMIT = 3.0
_RETRY = 0.2


@dataclass
class Queue:
    """A queue as its clients know it."""

    number: int
    rcv_id: bytes
    snd_id: bytes
    rcv_keys: dict[str, KeyPair]  # every recipient key that was ever set, by its name in the history
    rcv_key: KeyPair  # the one that was confirmed last
    snd_key: KeyPair | None
    secret: bytes
    link_id: bytes
    notifiers: dict[str, tuple[bytes, KeyPair]] = field(default_factory=dict)  # by name: notifier id, key
    key_is_certain: bool = True  # no change of the recipient key is unanswered


class Draft:
    """A queue to be made: its NEW, and the keys that the router does not choose.

    With `repeatable`, the client chooses the sender id, and may send the same NEW again when it gets no answer.
    """

    def __init__(
        self, crowd: Crowd, *, contact: bool = False, subscribe: bool = True, repeatable: bool = False
    ) -> None:
        self.key, self.snd_key, self._dh_key = generate("x25519"), generate("x25519"), generate("x25519")
        self.contact = contact
        self.corr_id = crowd.rng.randbytes(24) if repeatable else None
        mode: ContactReq | MessagingReq = ContactReq() if contact else MessagingReq()
        if self.corr_id is not None:
            mode = MessagingReq((sha3_384(self.corr_id).digest()[:24], LinkData(b"fixed", b"user")))
        self.command = NEW(self.key.spki, self._dh_key.public, subscribe=subscribe, queue_req=mode)

    def made(self, crowd: Crowd, ids: IDS, client: Client, op: int | None = None) -> Queue:
        """The router has made the queue. `op` is the NEW in the history."""
        number = len(crowd.queues)
        name = f"first key of {number}"
        queue = Queue(
            number,
            ids.rcv_id,
            ids.snd_id,
            {name: self.key},
            self.key,
            None if self.contact else self.snd_key,
            dh(ids.dh_key, self._dh_key.private),
            crowd.rng.randbytes(24),
        )
        crowd.queues.append(queue)
        crowd.by_id[ids.rcv_id] = queue
        fields = {} if op is None else {"op": op}
        service = client.service if self.command.subscribe else ""
        crowd.history.write("queue", queue=number, id=ids.rcv_id.hex(), service=service, key=name, **fields)
        return queue


class Outcome(NamedTuple):
    result: str  # ok, refused or unknown
    reply: Answer | None


class Client:
    """One connection. `on_message`, `on_end` and `on_ends` take what the router pushes."""

    def __init__(self, crowd: Crowd, smp: SmpClient, edge: int, service: str) -> None:
        self.crowd = crowd
        self.smp = smp
        self.service = service
        self.number = next(crowd.connections)
        self.on_message: Callable[[Queue, MSG], None] = lambda _queue, _message: None
        self.on_end: Callable[[Queue], None] = lambda _queue: None
        self.on_ends: Callable[[], None] = lambda: None
        crowd.history.write("open", conn=self.number, edge=edge, service=service)
        smp.on_event = self._on_event
        smp.on_close = self._on_close
        while not smp.events.empty():
            self._on_event(smp.events.get_nowait())

    @property
    def is_open(self) -> bool:
        return not self.smp.closed.is_set()

    def abort(self) -> None:
        self.smp.connection.abort()

    async def close(self) -> None:
        self.abort()
        await self.smp.closed.wait()

    async def call(
        self,
        name: str,
        queue: Queue | None,
        command: Command,
        entity_id: bytes,
        key: KeyPair | None,
        *,
        corr_id: bytes | None = None,
        on_ok: Callable[[Answer, int], None] | None = None,
        **fields: object,
    ) -> Outcome:
        """Send a command. Without an answer in time, the connection is given up.

        `on_ok` gets the answer and the command's number in the history before the next event of the connection.
        """
        history = self.crowd.history
        if queue is not None:
            fields["queue"] = queue.number
        op = history.call(self.number, name, **fields)
        answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def on_reply(reply: Answer) -> None:
            if answered.done():
                return
            outcome = _outcome(reply)
            error = {"error": str(getattr(reply.error, "name", "other"))} if isinstance(reply, ERR) else {}
            history.write("done", op=op, result=outcome.result, **error)
            if isinstance(reply, MSG) and queue is not None:
                self.arrived(queue, reply, op)
            if on_ok is not None and outcome.result == "ok":
                on_ok(reply, op)
            answered.set_result(outcome)

        try:
            self.smp.submit(command, entity_id, key, on_reply, corr_id=corr_id)
        except ClientError:
            on_reply(CLOSED)
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                return await answered
        except TimeoutError:
            history.write("done", op=op, result="unknown", error="no answer")
            self.abort()
            return Outcome("unknown", None)

    def arrived(self, queue: Queue, message: MSG, op: int | None = None) -> None:
        body = decrypt_message(queue.secret, message.msg_id, message.body)
        value = int(body.body.split(b" ", 1)[0]) if isinstance(body, RcvMsgBody) else -1
        answer = {} if op is None else {"op": op}
        self.crowd.history.write(
            "event",
            conn=self.number,
            name="MSG",
            queue=queue.number,
            message=message.msg_id.hex(),
            value=value,
            **answer,
        )

    def _on_event(self, transmission: ServerTransmission) -> None:
        reply, history = transmission.reply, self.crowd.history
        if isinstance(reply, ENDS):
            history.write("event", conn=self.number, name="ENDS", service=self.service)
            self.on_ends()
            return
        if isinstance(reply, ALLS):
            history.write("event", conn=self.number, name="ALLS", service=self.service)
            return
        queue = self.crowd.by_id.get(transmission.entity_id)
        if queue is None:
            return
        if isinstance(reply, MSG):
            self.arrived(queue, reply)
            self.on_message(queue, reply)
        elif isinstance(reply, END | DELD):
            history.write("event", conn=self.number, name=type(reply).__name__, queue=queue.number)
            self.on_end(queue)

    def _on_close(self) -> None:
        self.crowd.history.write("close", conn=self.number)


def _outcome(reply: Answer) -> Outcome:
    if reply is CLOSED or reply == ERR(Simple.INTERNAL):
        return Outcome("unknown", None)
    return Outcome("refused" if isinstance(reply, ERR) else "ok", reply)


class Crowd:
    """All clients of a run: their queues, their history, and the way to the edges."""

    def __init__(self, history: Writer, addresses: list[SmpAddress], rng: random.Random) -> None:
        self.history = history
        self.addresses = addresses
        self.rng = rng
        self.connections = itertools.count(1)
        self.values = itertools.count(1)  # numbers of messages, and of values that are written
        self.queues: list[Queue] = []
        self.by_id: dict[bytes, Queue] = {}
        self.services: dict[str, ServiceCredentials] = {}
        self.clients: list[Client] = []

    async def connect(self, service: str = "", edge: int | None = None) -> Client:
        """To any edge that answers, the given one first."""
        while True:
            at = self.rng.randrange(len(self.addresses)) if edge is None else edge
            edge = None
            try:
                smp = await SmpClient.connect(
                    self.addresses[at], service=self.services.get(service), timeout=_CONNECT_LIMIT
                )
            except ConnectError:
                await asyncio.sleep(_RETRY * self.rng.random())
                continue
            client = Client(self, smp, at, service)
            self.clients.append(client)
            return client

    @asynccontextmanager
    async def connected(self, service: str = "", edge: int | None = None) -> AsyncIterator[Client]:
        client = await self.connect(service, edge)
        try:
            yield client
        finally:
            await client.close()

    async def make_queues(self, count: int, *, service: str = "", contact: bool = False) -> list[Queue]:
        """Before the faults begin. A busy machine may cut a connection even then."""
        made: list[Queue] = []
        while len(made) < count:
            draft = Draft(self, contact=contact, subscribe=bool(service), repeatable=bool(service))
            while (queue := await self._make(draft, service)) is None:
                pass
            made.append(queue)
        return made

    async def _make(self, draft: Draft, service: str) -> Queue | None:
        """None: not all commands were answered."""
        async with self.connected(service, edge=0) as client:
            try:
                ids = await client.smp.send(draft.command, b"", draft.key, corr_id=draft.corr_id)
                if not isinstance(ids, IDS):
                    return None
                if not draft.contact and await client.smp.send(KEY(draft.snd_key.spki), ids.rcv_id, draft.key) != OK():
                    return None
            except ClientError:
                return None
            return draft.made(self, ids, client)
