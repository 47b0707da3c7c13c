"""An SMP client on one connection. It sends commands in batches and matches replies by their correlation ids.

`send` and `send_many` await replies. `submit` passes the reply to a callback, which is faster. All commands that are
submitted in one turn of the event loop share blocks. Events (MSG, END, …) go to `on_event`. A reply that arrives after
its command's timeout goes there too.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, dh
from weir.transport.smp import SmpClientConnection, connect
from weir.wire.address import SmpAddress
from weir.wire.errors import ErrorType, Simple, TransportError
from weir.wire.smp.codec import encode_command
from weir.wire.smp.commands import NEW, NSUB, NSUBS, PING, SUB, SUBS, Command, ServiceRole
from weir.wire.smp.replies import ERR, PONG, SOKS, Reply
from weir.wire.smp.transmission import ServerTransmission, decode_replies, encode_client, fits, for_auth, pack_forward

_SERVICE_COMMANDS = frozenset((NEW, SUB, NSUB))
DEFAULT_TIMEOUT = 15.0

Answer = Reply | ErrorType
OnReply = Callable[[Answer], None]


class ClientError(Exception):
    """The base of all errors of the clients."""


class ConnectionClosed(ClientError):
    """The connection ended before the reply arrived."""


class ReplyTimeout(ClientError):
    """The router did not reply within the timeout."""


class CommandNotSent(ClientError):
    """The command cannot be sent over this connection: it is too large, or the router has no session key."""

    def __init__(self, error: TransportError) -> None:
        super().__init__(error.value)
        self.error = error


class UnexpectedReply(ClientError):
    """The router's reply does not belong to the command. The message is the reply's class, without its contents."""

    def __init__(self, reply: Answer) -> None:
        super().__init__(type(reply).__name__)
        self.reply = reply


class NoServiceSession(ClientError):
    """The connection has no service session in the role that the command needs."""


@dataclass(frozen=True, slots=True)
class ServiceSub:
    """A service's subscription: the number of its queues and the idsHash of their ids."""

    service_id: bytes
    count: int
    ids_hash: bytes


class Request(NamedTuple):
    """A command, the id of its queue or service, and the key that authorises it."""

    command: Command
    entity_id: bytes = b""
    key: KeyPair | None = None


class SmpClient:
    """An SMP client on one connection.

    Events go to the queue `events`, unless `on_event` is set. `on_close` is called when the connection has ended.
    """

    def __init__(self, connection: SmpClientConnection, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        self.connection = connection
        self.session = connection.session
        self.timeout = timeout
        self.events: asyncio.Queue[ServerTransmission] = asyncio.Queue()
        self.on_event: Callable[[ServerTransmission], None] = self.events.put_nowait
        self.on_close: Callable[[], object] | None = None
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pending: dict[bytes, OnReply] = {}
        self._outgoing: list[bytes] = []
        self._secrets: dict[bytes, bytes] = {}
        self._corr_prefix = os.urandom(16)
        self._sent = 0
        connection.attach(self)

    @classmethod
    async def connect(
        cls, address: SmpAddress | str, *, reply_timeout: float = DEFAULT_TIMEOUT, **options: Any
    ) -> "SmpClient":
        """Connect to a router. The options are those of `weir.transport.smp.connect`."""
        return cls(await connect(address, **options), timeout=reply_timeout)

    async def __aenter__(self) -> "SmpClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        self.connection.close()
        await self.closed.wait()

    @property
    def service_id(self) -> bytes | None:
        return None if self.connection.service is None else self.connection.service.service_id

    # Commands

    async def send(
        self,
        command: Command,
        entity_id: bytes = b"",
        key: KeyPair | None = None,
        *,
        corr_id: bytes | None = None,
        timeout: float | None = None,
    ) -> Answer:
        """Send a command and return the reply, which may be ERR. Raises ClientError if there is no reply."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        corr_id = self.submit(command, entity_id, key, _settle(future), corr_id=corr_id)
        return await self._wait(future, corr_id, timeout)

    async def send_many(self, requests: Iterable[Request], *, timeout: float | None = None) -> list[Answer]:
        """Send commands and return all replies in the order of the requests."""
        waiting: list[tuple[asyncio.Future[Answer], bytes]] = []
        try:
            for command, entity_id, key in requests:
                future: asyncio.Future[Answer] = self._loop.create_future()
                waiting.append((future, self.submit(command, entity_id, key, _settle(future))))
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                return [await future for future, _ in waiting]
        except TimeoutError:
            raise ReplyTimeout from None
        finally:
            for future, corr_id in waiting:
                self._pending.pop(corr_id, None)
                if not future.cancel() and not future.cancelled():
                    future.exception()  # mark as retrieved: only the first failure is raised

    def submit(
        self,
        command: Command,
        entity_id: bytes,
        key: KeyPair | None,
        on_reply: OnReply,
        *,
        corr_id: bytes | None = None,
    ) -> bytes:
        """Queue a command, to be sent at the end of this turn of the event loop. Returns the correlation id."""
        session = self.session
        if corr_id is None:
            self._sent += 1
            corr_id = self._corr_prefix + self._sent.to_bytes(8, "big")
        authorized, sent = for_auth(session, corr_id, entity_id, encode_command(session.version, command))
        auth, service_sig = b"", None
        if key is not None:
            service = self.connection.service
            if service is not None and type(command) in _SERVICE_COMMANDS:
                service_sig = sign("ed25519", service.key, authorized)
                # The queue's key also signs the service's certificate (protocol, "double authentication").
                authorized = service.cert_hash + authorized
            auth = self._authorize(key, corr_id, authorized)
        self.submit_encoded(encode_client(session, sent, auth, service_sig), corr_id, on_reply)
        return corr_id

    def submit_encoded(self, transmission: bytes, corr_id: bytes, on_reply: OnReply) -> None:
        """Queue an encoded transmission (`encode_client`). Its contents are not checked."""
        if not fits(transmission):
            raise CommandNotSent(TransportError.LARGE_MSG)
        if self.connection.closing:
            raise ConnectionClosed
        self._pending[corr_id] = on_reply
        if not self._outgoing:
            self._loop.call_soon(self.flush)
        self._outgoing.append(transmission)

    def flush(self) -> None:
        """Send the queued transmissions now, not at the end of this turn of the event loop."""
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            self.connection.send_contents(pack_forward(outgoing))

    async def subscribe_service(
        self, role: ServiceRole, count: int, ids_hash: bytes, *, timeout: float | None = None
    ) -> ServiceSub:
        """Send SUBS or NSUBS with the count and hash that the service expects. Returns those of the router."""
        service = self.connection.service
        if service is None or service.role is not role:
            raise NoServiceSession
        command = SUBS(count, ids_hash) if role is ServiceRole.MESSAGING else NSUBS(count, ids_hash)
        reply = await self.send(command, service.service_id, service.key_pair, timeout=timeout)
        if isinstance(reply, SOKS):
            return ServiceSub(service.service_id, reply.count, reply.ids_hash)
        if reply == ERR(Simple.SERVICE):
            raise NoServiceSession
        raise UnexpectedReply(reply)

    async def ping(self) -> float:
        """Send PING and return the round-trip time in seconds."""
        start = perf_counter()
        reply = await self.send(PING())
        if reply != PONG():
            raise UnexpectedReply(reply)
        return perf_counter() - start

    def _authorize(self, key: KeyPair, corr_id: bytes, message: bytes) -> bytes:
        if key.type != "x25519":
            return sign(key.type, key.private, message)
        secret = self._secrets.get(key.private)
        if secret is None:
            server_key = self.connection.server_key
            if server_key is None:
                raise CommandNotSent(TransportError.NO_AUTH)
            secret = self._secrets[key.private] = dh(server_key, key.private)
        return authenticate(secret, corr_id, message)

    async def _wait(self, future: "asyncio.Future[Answer]", corr_id: bytes, timeout: float | None) -> Answer:
        try:
            async with asyncio.timeout(self.timeout if timeout is None else timeout):
                return await future
        except TimeoutError:
            raise ReplyTimeout from None
        finally:
            self._pending.pop(corr_id, None)

    # Callbacks of the connection

    def on_block(self, content: bytes) -> None:
        pending = self._pending
        for transmission in decode_replies(self.session, content):
            on_reply = pending.pop(transmission.corr_id, None)
            if on_reply is None:
                self.on_event(transmission)
            else:
                on_reply(transmission.reply)

    def on_writable(self) -> None:
        pass

    def on_closed(self) -> None:
        pending, self._pending = self._pending, {}
        self.closed.set()
        for on_reply in pending.values():
            on_reply(CLOSED)
        if self.on_close is not None:
            self.on_close()


class _ClosedAnswer:
    """Passed to callbacks of `submit` in place of a reply if the connection ended."""


CLOSED: Any = _ClosedAnswer()


def _settle(future: "asyncio.Future[Answer]") -> OnReply:
    def settle(answer: Answer) -> None:
        if future.done():
            return
        if answer is CLOSED:
            future.set_exception(ConnectionClosed())
        else:
            future.set_result(answer)

    return settle
