"""The generator's clients, and helpers that send messages.

`CommandSender` does the least that a client must do for a command, so that the generator takes little of the machine.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from weir.bench.target import BenchError, Target
from weir.client.smp import Request, SmpClient
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, KeyType, dh
from weir.transport.client import ConnectError
from weir.transport.smp import ServiceCredentials, SmpClientConnection
from weir.wire.smp.commands import SEND
from weir.wire.smp.replies import OK
from weir.wire.smp.transmission import encode_client, for_auth
from weir.wire.versions import AUTH_CMDS

T = TypeVar("T")
R = TypeVar("R")

_SEND_BATCH = 32


@dataclass(slots=True)
class Queue:
    rcv_id: bytes
    snd_id: bytes
    rcv_key: KeyPair
    snd_key: KeyPair | None


def key_type_for(version: int, wanted: KeyType) -> KeyType:
    """Choose the type of queue keys. Version 7 introduced X25519 keys."""
    return "ed25519" if version < AUTH_CMDS and wanted == "x25519" else wanted


async def open_client(target: Target, service: ServiceCredentials | None = None) -> SmpClient:
    try:
        return await SmpClient.connect(
            target.address, versions=target.versions, service=service, timeout=60, reply_timeout=60
        )
    except ConnectError as error:
        raise BenchError(f"cannot connect: {error}") from None


async def send_to_each(target: Target, queues: list[Queue], size: int, *, timeout: float = 60) -> None:
    """Send one message of `size` bytes to each queue."""
    body = bytes(size)
    async with await open_client(target) as sender:
        for start in range(0, len(queues), _SEND_BATCH):
            requests = [Request(SEND(False, body), queue.snd_id) for queue in queues[start : start + _SEND_BATCH]]
            for answer in await sender.send_many(requests, timeout=timeout):
                if not isinstance(answer, OK):
                    raise BenchError(f"SEND failed: {describe(answer)}")


async def bounded(limit: int, items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """Run `work` on every item, at most `limit` at once. Return the results in order."""
    gate = asyncio.Semaphore(limit)

    async def one(item: T) -> R:
        async with gate:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))


class CommandSender:
    """Sends commands about one entity over one connection, authorised by one key."""

    __slots__ = ("_connection", "_count", "_entity_id", "_key", "_prefix", "_secret", "session")

    def __init__(self, connection: SmpClientConnection, entity_id: bytes, key: KeyPair | None) -> None:
        self._connection = connection
        self._entity_id = entity_id
        self._key = key
        self._secret: bytes | None = None
        if key is not None and key.type == "x25519":
            self._secret = dh(session_key(connection), key.private)
        self._prefix = os.urandom(16)
        self._count = 0
        self.session = connection.session

    def send(self, command: bytes) -> None:
        self._count += 1
        corr_id = self._prefix + self._count.to_bytes(8, "big")
        authorized, sent = for_auth(self.session, corr_id, self._entity_id, command)
        if self._secret is not None:
            auth = authenticate(self._secret, corr_id, authorized)
        elif self._key is not None:
            auth = sign(self._key.type, self._key.private, authorized)
        else:
            auth = b""
        self._connection.send_contents([b"\x01" + encode_client(self.session, sent, auth, None)])


def session_key(connection: SmpClientConnection) -> bytes:
    """Return the router's session key, which authenticators need."""
    if connection.server_key is None:
        raise BenchError("the router has no session key for authenticators: use --keys ed25519")
    return connection.server_key


def describe(answer: object) -> str:
    """Name an answer or its error, without ids and keys."""
    return str(getattr(answer, "error", None) or type(answer).__name__)
