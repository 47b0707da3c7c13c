"""The generator's own clients: the least a client can do to send, receive and acknowledge."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from weir.bench.target import BenchError, Target
from weir.client.smp import Answer, SmpClient
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, KeyType, dh, generate
from weir.transport.client import ClientConnection, ConnectError
from weir.transport.handshake import ServiceCredentials
from weir.wire.commands import KEY, NEW
from weir.wire.replies import IDS, OK
from weir.wire.transmission import encode_client, for_auth
from weir.wire.versions import AUTH_CMDS

T = TypeVar("T")
R = TypeVar("R")


@dataclass(slots=True)
class Queue:
    rcv_id: bytes
    snd_id: bytes
    rcv_key: KeyPair
    snd_key: KeyPair | None


def key_type_for(version: int, wanted: KeyType) -> KeyType:
    """Authenticators came with version 7."""
    return "ed25519" if version < AUTH_CMDS and wanted == "x25519" else wanted


async def open_client(target: Target, service: ServiceCredentials | None = None) -> SmpClient:
    try:
        return await SmpClient.connect(
            target.address, versions=target.versions, service=service, timeout=60, reply_timeout=60
        )
    except ConnectError as error:
        raise BenchError(f"cannot connect: {error}") from None


async def create_queue(
    target: Target, client: SmpClient, key_type: KeyType, *, subscribe: bool = True, secure: bool = True
) -> Queue:
    """A queue with its recipient's subscription, secured by a sender's key."""
    kind = key_type_for(client.session.version, key_type)
    rcv_key, snd_key = generate(kind), generate(kind) if secure else None
    new = NEW(rcv_key.spki, generate("x25519").public, target.basic_auth, subscribe)
    ids = await client.send(new, b"", rcv_key)
    if not isinstance(ids, IDS):
        raise BenchError(f"the router makes no queue: {ids}")
    if snd_key is not None:
        answer = await client.send(KEY(snd_key.spki), ids.rcv_id, rcv_key)
        if not isinstance(answer, OK):
            raise BenchError(f"the router secures no queue: {answer}")
    return Queue(ids.rcv_id, ids.snd_id, rcv_key, snd_key)


async def bounded(limit: int, items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """`work` on every item, at most `limit` at once, results in order."""
    gate = asyncio.Semaphore(limit)

    async def one(item: T) -> R:
        async with gate:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))


class Lane:
    """One connection and one key: commands are built around a prepared authorisation."""

    __slots__ = ("_connection", "_count", "_entity_id", "_key", "_prefix", "_secret", "session")

    def __init__(self, connection: ClientConnection, entity_id: bytes, key: KeyPair | None) -> None:
        self._connection = connection
        self._entity_id = entity_id
        self._key = key
        self._secret: bytes | None = None
        if key is not None and key.type == "x25519":
            if connection.server_key is None:
                raise BenchError("the router offers no key for authenticators: use --keys ed25519")
            self._secret = dh(connection.server_key, key.private)
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


def text(answer: Answer) -> str:
    """An answer for people: no ids, no keys."""
    return str(getattr(answer, "error", None) or type(answer).__name__)
