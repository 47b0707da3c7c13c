"""A client on one connection, the same for SMP and NTF: it sends commands in batches and awaits their replies.

`send` and `send_many` await replies. `submit` passes the reply to a callback, which is faster. All commands that are
submitted in one turn of the event loop share blocks. A transmission that answers no waiting command goes to `on_event`:
an event of the router, or a reply that arrives after its command's timeout.

A protocol's client encodes commands (`_encode_command`, `_sign`) and reads blocks (`_decode_block`).
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from weir.client.errors import ClientError, CommandNotSent, ConnectionClosed, ReplyTimeout, UnexpectedReply
from weir.crypto.authenticator import authenticate, sign
from weir.crypto.keys import KeyPair, dh
from weir.transport.client import ClientConnection
from weir.wire.errors import TransportError
from weir.wire.frame import encode_client, for_auth

DEFAULT_TIMEOUT = 15.0


class _Transmission(Protocol):
    @property
    def corr_id(self) -> bytes: ...
    @property
    def reply(self) -> Any: ...


N = TypeVar("N", bound=ClientConnection)
K = TypeVar("K")
A = TypeVar("A")
E = TypeVar("E", bound=_Transmission)


class Client(ABC, Generic[N, K, A, E]):
    """Commands `K` over a connection `N`. Replies are `A`, and `E` is a router's transmission.

    Events go to the queue `events`, unless `on_event` is set. `on_close` is called when the connection has ended.
    """

    def __init__(self, connection: N, *, timeout: float = DEFAULT_TIMEOUT, keep_secrets: bool = True) -> None:
        """`keep_secrets`: remember the secret of every X25519 key, for a client that uses its keys again and again."""
        self.connection = connection
        self.timeout = timeout
        self.events: asyncio.Queue[E] = asyncio.Queue()
        self.on_event: Callable[[E], None] = self.events.put_nowait
        self.on_close: Callable[[], object] | None = None
        self.closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pending: dict[bytes, Callable[[A], None]] = {}
        self._outgoing: list[bytes] = []
        self._secrets: dict[bytes, bytes] | None = {} if keep_secrets else None
        self._corr_prefix = os.urandom(16)
        self._sent = 0
        connection.attach(self)

    async def close(self) -> None:
        self.connection.close()
        await self.closed.wait()

    # The protocol's part

    @abstractmethod
    def _encode_command(self, command: K) -> bytes: ...

    @abstractmethod
    def _decode_block(self, content: bytes) -> Sequence[E]: ...

    @abstractmethod
    def _pack(self, transmissions: list[bytes]) -> list[bytes]:
        """Return the contents of the blocks that carry these transmissions."""

    @abstractmethod
    def _fits(self, transmission: bytes) -> bool:
        """Whether an encoded transmission fits into a block."""

    def _sign(self, command: K, key: KeyPair, corr_id: bytes, authorized: bytes) -> tuple[bytes, bytes | None]:
        """Return the authorisation and the service's signature, which only SMP has."""
        return self._authorize(key, corr_id, authorized), None

    # Commands

    async def send(
        self,
        command: K,
        entity_id: bytes = b"",
        key: KeyPair | None = None,
        *,
        corr_id: bytes | None = None,
        timeout: float | None = None,
    ) -> A:
        """Send a command and return the reply, which may be ERR. Raises ClientError if there is no reply."""
        future: asyncio.Future[A] = self._loop.create_future()
        corr_id = self.submit(command, entity_id, key, _settle(future), corr_id=corr_id)
        return await self._wait(future, corr_id, timeout)

    async def send_many(
        self, requests: Iterable[tuple[K, bytes, KeyPair | None]], *, timeout: float | None = None
    ) -> list[A]:
        """Send commands and return all replies in the order of the requests."""
        waiting: list[tuple[asyncio.Future[A], bytes]] = []
        try:
            for command, entity_id, key in requests:
                future: asyncio.Future[A] = self._loop.create_future()
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

    async def send_each(
        self, requests: Iterable[tuple[K, bytes, KeyPair | None]], *, timeout: float | None = None
    ) -> list[A | ClientError]:
        """Send commands and return what became of each: the reply, or why there is none."""
        outcomes: list[A | ClientError] = []
        waiting: dict[bytes, int] = {}
        complete = asyncio.Event()

        def settle(at: int, corr_id: bytes, answer: A) -> None:
            if waiting.pop(corr_id, None) is not None:
                outcomes[at] = ConnectionClosed() if answer is CLOSED else answer
                if not waiting:
                    complete.set()

        for at, (command, entity_id, key) in enumerate(requests):
            outcomes.append(ReplyTimeout())
            self._sent += 1
            corr_id = self._corr_prefix + self._sent.to_bytes(8, "big")
            try:
                self.submit(command, entity_id, key, partial(settle, at, corr_id), corr_id=corr_id)
            except ClientError as error:
                outcomes[at] = error
            else:
                waiting[corr_id] = at
        try:
            if waiting:
                async with asyncio.timeout(self.timeout if timeout is None else timeout):
                    await complete.wait()
        except TimeoutError:
            pass
        finally:
            for corr_id in waiting:
                self._pending.pop(corr_id, None)
        return outcomes

    def submit(
        self,
        command: K,
        entity_id: bytes,
        key: KeyPair | None,
        on_reply: Callable[[A], None],
        *,
        corr_id: bytes | None = None,
    ) -> bytes:
        """Queue a command, to be sent at the end of this turn of the event loop. Returns the correlation id."""
        session = self.connection.session
        if corr_id is None:
            self._sent += 1
            corr_id = self._corr_prefix + self._sent.to_bytes(8, "big")
        authorized, sent = for_auth(session, corr_id, entity_id, self._encode_command(command))
        auth, service_sig = (b"", None) if key is None else self._sign(command, key, corr_id, authorized)
        self.submit_encoded(encode_client(session, sent, auth, service_sig), corr_id, on_reply)
        return corr_id

    def submit_encoded(self, transmission: bytes, corr_id: bytes, on_reply: Callable[[A], None]) -> None:
        """Queue an encoded transmission (`encode_client`). Its contents are not checked."""
        if not self._fits(transmission):
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
            self.connection.send_contents(self._pack(outgoing))

    async def _ping(self, ping: K, pong: A) -> float:
        start = perf_counter()
        reply = await self.send(ping)
        if reply != pong:
            raise UnexpectedReply(reply)
        return perf_counter() - start

    def _authorize(self, key: KeyPair, corr_id: bytes, message: bytes) -> bytes:
        if key.type != "x25519":
            return sign(key.type, key.private, message)
        secret = None if self._secrets is None else self._secrets.get(key.private)
        if secret is None:
            server_key = self.connection.server_key
            if server_key is None:
                raise CommandNotSent(TransportError.NO_AUTH)
            secret = dh(server_key, key.private)
            if self._secrets is not None:
                self._secrets[key.private] = secret
        return authenticate(secret, corr_id, message)

    async def _wait(self, future: "asyncio.Future[A]", corr_id: bytes, timeout: float | None) -> A:
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
        for transmission in self._decode_block(content):
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


def _settle(future: "asyncio.Future[A]") -> Callable[[A], None]:
    def settle(answer: A) -> None:
        if future.done():
            return
        if answer is CLOSED:
            future.set_exception(ConnectionClosed())
        else:
            future.set_result(answer)

    return settle
