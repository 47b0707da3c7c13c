"""An HTTPS server on the event loop, for stand-ins: HTTP/2 by jh2, HTTP/1.1 by h11, and every way to fail."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, cast

import h11
from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.errors import ErrorCodes
from jh2.events import DataReceived, PingReceived, RequestReceived, StreamEnded, StreamReset
from jh2.settings import SettingCodes, Settings

_CONFIG: Final = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_inbound_headers=True,
    validate_outbound_headers=False,
    normalize_outbound_headers=False,
)
_WINDOW: Final = 2**24
_FRAME: Final = 16_384

Failure = Literal["hang", "reset", "refuse", "goaway", "close"]


@dataclass(slots=True)
class Received:
    """A request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    connection: int = 0
    """The number of the connection, in the order in which connections were accepted."""


class Answer(NamedTuple):
    """`failure` happens instead of the answer: the stream is kept open (`hang`), cancelled (`reset`), or refused with
    REFUSED_STREAM (`refuse`); GOAWAY tells that this stream was not processed (`goaway`); the connection is cut."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    delay: float = 0.0
    failure: Failure | None = None


Handler = Callable[[Received], Answer]


@dataclass
class Behaviour:
    """The limits that a server announces, and what happened so far. Tests change the limits while the server runs."""

    streams: int = 1000
    window: int = _WINDOW
    silent: bool = False  # accept bytes and never answer, not even pings
    connections: set[_Http2 | _Http1] = field(default_factory=set)
    accepted: int = 0
    most_streams: int = 0
    pings: int = 0


class Server:
    def __init__(self, handler: Handler, context: ssl.SSLContext, *, http1_only: bool = False) -> None:
        context.set_alpn_protocols(["http/1.1"] if http1_only else ["h2", "http/1.1"])
        self._context = context
        self._handler = handler
        self._server: asyncio.Server | None = None
        self.behaviour = Behaviour()
        self.port = 0

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Chooser(self._handler, self.behaviour), host, port, ssl=self._context
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.sleep(0)

    def cut(self) -> None:
        """End all connections without a word."""
        for connection in list(self.behaviour.connections):
            connection.cut()

    def go_away(self) -> None:
        """Ask all clients to open new connections; requests in flight are still answered."""
        for connection in list(self.behaviour.connections):
            if isinstance(connection, _Http2):
                connection.go_away()


class _Chooser(asyncio.Protocol):
    def __init__(self, handler: Handler, behaviour: Behaviour) -> None:
        self._arguments = (handler, behaviour)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        protocol = (_Http2 if chosen == "h2" else _Http1)(*self._arguments)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


class _Both(asyncio.Protocol):
    def __init__(self, handler: Handler, behaviour: Behaviour) -> None:
        self._handler = handler
        self._behaviour = behaviour
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._number = self._behaviour.accepted
        self._behaviour.accepted += 1
        self._behaviour.connections.add(cast("_Http1 | _Http2", self))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._behaviour.connections.discard(cast("_Http1 | _Http2", self))

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def send_raw(self, data: bytes) -> None:
        """Send bytes that need not be HTTP."""
        self._write(data)

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)


class _Http2(_Both):
    def __init__(self, handler: Handler, behaviour: Behaviour) -> None:
        super().__init__(handler, behaviour)
        self._h2 = H2Connection(_CONFIG)
        self._requests: dict[int, Received] = {}
        self._leaving = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: self._behaviour.streams,
            SettingCodes.INITIAL_WINDOW_SIZE: self._behaviour.window,
        }
        self._h2.local_settings = Settings(client=False, initial_values=values)
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(self._behaviour.window)
        if not self._behaviour.silent:
            self._flush()

    def data_received(self, data: bytes) -> None:
        if self._behaviour.silent:
            return
        for event in self._h2.receive_data(data):
            match event:
                case RequestReceived() if not self._leaving:
                    headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
                    method, path = headers.pop(":method"), headers.pop(":path")
                    self._requests[event.stream_id] = Received(method, path, headers, connection=self._number)
                    self._behaviour.most_streams = max(self._behaviour.most_streams, len(self._requests))
                case DataReceived():
                    if event.stream_id in self._requests:
                        self._requests[event.stream_id].body += event.data
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                case StreamEnded() if event.stream_id in self._requests:
                    self._on_request(event.stream_id)
                case StreamReset():
                    self._requests.pop(event.stream_id, None)
                case PingReceived():
                    self._behaviour.pings += 1
        self._flush()

    def go_away(self) -> None:
        self._go_away(max(self._requests, default=self._h2.highest_inbound_stream_id))
        self._close_if_done()

    def _go_away(self, last: int) -> None:
        """Written as bytes, because jh2 itself would answer nothing any more."""
        self._leaving = True
        self._flush()
        self._write(b"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + last.to_bytes(4, "big") + bytes(4))

    def _on_request(self, stream_id: int) -> None:
        answer = self._handler(self._requests[stream_id])
        if answer.delay:
            self._loop.call_later(answer.delay, self._answer_later, stream_id, answer)
        else:
            self._answer(stream_id, answer)

    def _answer_later(self, stream_id: int, answer: Answer) -> None:
        if stream_id in self._requests and self._transport is not None:
            self._answer(stream_id, answer)
            self._flush()

    def _answer(self, stream_id: int, answer: Answer) -> None:
        match answer.failure:
            case "hang":
                return
            case "close":
                self.cut()
                return
            case "goaway":
                self._go_away(max(stream_id - 2, 0))
            case "reset" | "refuse":
                code = ErrorCodes.REFUSED_STREAM if answer.failure == "refuse" else ErrorCodes.INTERNAL_ERROR
                self._h2.reset_stream(stream_id, code)
            case None:
                headers = [(b":status", b"%d" % answer.status)]
                headers += [(name.encode(), value.encode()) for name, value in answer.headers]
                self._h2.send_headers(stream_id, headers, end_stream=not answer.body)
                for at in range(0, len(answer.body), _FRAME):
                    last = at + _FRAME >= len(answer.body)
                    self._h2.send_data(stream_id, answer.body[at : at + _FRAME], end_stream=last)
        del self._requests[stream_id]
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self._leaving and not self._requests and self._transport is not None:
            self._flush()
            self._transport.close()

    def _flush(self) -> None:
        self._write(self._h2.data_to_send())


class _Http1(_Both):
    def __init__(self, handler: Handler, behaviour: Behaviour) -> None:
        super().__init__(handler, behaviour)
        self._h11 = h11.Connection(h11.SERVER)
        self._request: Received | None = None

    def data_received(self, data: bytes) -> None:
        if self._behaviour.silent:
            return
        self._h11.receive_data(data)
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Request):
                headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
                self._request = Received(event.method.decode(), event.target.decode(), headers, connection=self._number)
            elif isinstance(event, h11.Data) and self._request is not None:
                self._request.body += event.data
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                answer = self._handler(self._request)
                if answer.delay:
                    self._loop.call_later(answer.delay, self._answer, answer)
                else:
                    self._answer(answer)
            else:
                return

    def _answer(self, answer: Answer) -> None:
        if answer.failure == "hang" or self._transport is None:
            return
        if answer.failure is not None:
            self.cut()
            return
        headers = [*answer.headers, ("content-length", str(len(answer.body)))]
        events: tuple[h11.Event, ...] = (
            h11.Response(status_code=answer.status, headers=headers),
            h11.Data(data=answer.body),
            h11.EndOfMessage(),
        )
        self._write(b"".join(self._h11.send(event) or b"" for event in events))
        self._h11.start_next_cycle()
