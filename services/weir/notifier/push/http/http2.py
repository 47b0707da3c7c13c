"""HTTP/2 on the event loop. The protocol itself is jh2's.

Many requests are in flight at once, as many as the server allows and at most 1,000. The frames of one turn of the loop
leave in one write. A ping finds out whether a silent server is still there. After GOAWAY, requests that the server
will not process fail with Refused, those before them get their responses, and the connection closes after the last.

Libraries compared in November 2026 (Python 3.11, uvloop, one connection over TLS on loopback to a server in another
process, bodies of 4,090 bytes; pushes per CPU-second of the client with 1, 100 and 1,000 requests in flight):

    pycurl 7.49 (libcurl multi, nghttp2)    9,700   41,100   27,600
    this module, on jh2 5.0                 7,800   20,600   17,600
    jh2 5.0 alone (Rust compresses headers) 7,200   24,000   11,600
    h2 4.4 alone (pure Python)              4,700    9,100    6,500
    httpx 0.28 (on h2)                      1,070    1,370    1,150

- pycurl is the fastest, keeps the server's limit of streams and sends again what GOAWAY refused. But pycurl has no call
  to send a ping, so a stalled connection stays in its pool until every request on it has timed out.
- h2 and jh2 have the same interface. Both refuse all frames after GOAWAY, also responses that are still due, and count
  open streams by walking through them for each request (140 µs when 1,000 are open). `_Connection` changes these two.
- A push costs 25 µs more here than with libcurl. To receive, store and encrypt a notification costs many times that.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, cast

from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.errors import ErrorCodes
from jh2.events import (
    ConnectionTerminated,
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from jh2.settings import SettingCodes, Settings

from weir.notifier.push.http.exchange import LARGEST_RESPONSE, Connection, Lost, Refused, Request, Response
from weir.telemetry.errors import describe

_log = logging.getLogger(__name__)

MOST_STREAMS: Final = 1000
_WALK: Final = 64
# A server may send as many bytes: a device chooses its push server, which must not keep an edge busy.
_FIRST_BYTES: Final = 65_536
_BYTES_PER_REQUEST: Final = 65_536
_LAST_STREAM: Final = 2**31 - 1 - 2 * MOST_STREAMS

# Seconds. A server that is silent for SILENCE while requests are in flight, or for IDLE, is sent a ping.
SILENCE: Final = 5.0
IDLE: Final = 60.0
PONG_WITHIN: Final = 5.0
_TICK: Final = 1.0

_CONFIG: Final = H2Configuration(
    client_side=True,
    header_encoding=None,
    validate_outbound_headers=False,  # our own headers, and paths that the decoder of tokens has checked
    normalize_outbound_headers=False,
)


class _Connection(H2Connection):  # type: ignore[misc]
    """jh2 with an open state machine after GOAWAY, and a count of streams that costs little.

    `Http2.room` keeps the limit of streams. jh2's walk also forgets closed streams, so it happens for every 64th.
    """

    _until_walk = _WALK

    @property
    def open_outbound_streams(self) -> int:
        self._until_walk -= 1
        if self._until_walk:
            return 0
        self._until_walk = _WALK
        return cast(int, super().open_outbound_streams)

    def _receive_goaway_frame(self, frame: Any) -> tuple[list[Any], list[Any]]:
        event = ConnectionTerminated()
        event.error_code = frame.error_code
        event.last_stream_id = frame.last_stream_id
        return [], [event]


class _Stream:
    __slots__ = ("body", "deadline", "ended", "headers", "response", "status", "unsent")

    def __init__(self, response: Future[Response], unsent: bytes, deadline: float) -> None:
        self.response = response
        self.unsent = unsent
        self.deadline = deadline
        self.ended = False
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""


class Http2(Connection):
    """Ready when the server has sent its settings."""

    def __init__(self, on_ready: Callable[[], None], on_change: Callable[[Connection], None]) -> None:
        super().__init__(on_ready, on_change)
        self._h2 = _Connection(_CONFIG)
        self._streams: dict[int, _Stream] = {}
        self._blocked: deque[int] = deque()  # streams whose bodies wait for the server's window
        self._limit = 0
        self._flush_scheduled = False
        self._allowance = _FIRST_BYTES
        self._heard = monotonic()
        self._pinged: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    # Connection

    @property
    def room(self) -> int:
        return 0 if self.retired else max(self._limit - len(self._streams), 0)

    @property
    def in_flight(self) -> int:
        return len(self._streams)

    def send(self, request: Request, timeout: float) -> Future[Response]:
        stream_id = self._h2.get_next_available_stream_id()
        self._h2.send_headers(
            stream_id,
            [
                (b":method", b"POST"),
                (b":scheme", b"https"),
                (b":authority", request.origin.authority),
                (b":path", request.path),
                *request.headers,
            ],
            end_stream=not request.body,
        )
        self._allowance += _BYTES_PER_REQUEST
        response: Future[Response] = self._loop.create_future()
        self._streams[stream_id] = _Stream(response, request.body, monotonic() + timeout)
        response.add_done_callback(lambda _: self._on_answered(stream_id))
        if not self._send_body(stream_id):
            self._blocked.append(stream_id)
        if stream_id >= _LAST_STREAM:
            self.retire()
        self._schedule_flush()
        return response

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._h2.local_settings = Settings(client=True, initial_values={SettingCodes.ENABLE_PUSH: 0})
        self._h2.initiate_connection()
        self._flush()
        self._timer = self._loop.call_later(_TICK, self._tick)

    def data_received(self, data: bytes) -> None:
        self._heard = monotonic()
        self._pinged = None
        self._allowance -= len(data)
        if self._allowance < 0:
            _log.debug("a push service sends more than its answers")
            self.abort()
            return
        try:
            for event in self._h2.receive_data(data):
                self._on_event(event)
        except Exception as error:  # jh2 has errors of many types for bytes that are not HTTP/2
            _log.debug("a push service broke the protocol: %s", describe(error))
            self.abort()
            return
        self._schedule_flush()
        self._close_if_done()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for stream in list(self._streams.values()):
            if not stream.response.done():
                stream.response.set_exception(Lost("the connection ended"))
        super().connection_lost(exc)

    # Events of jh2

    def _on_event(self, event: object) -> None:
        match event:
            case ResponseReceived():
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.headers = dict(event.headers)
                    stream.status = int(stream.headers.pop(b":status"))
            case DataReceived():
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.body += event.data
                    if len(stream.body) > LARGEST_RESPONSE:
                        self._answer(stream)
            case StreamEnded():
                stream = self._streams.get(event.stream_id)
                if stream is not None:
                    stream.ended = True
                    self._answer(stream)
            case StreamReset():
                refused = event.error_code == ErrorCodes.REFUSED_STREAM
                error = Refused("the server refused the request") if refused else Lost("the server cancelled")
                self._fail(event.stream_id, error, ended=True)
            case RemoteSettingsChanged():
                self._on_settings()
            case WindowUpdated():
                while self._blocked and self._send_body(self._blocked[0]):
                    self._blocked.popleft()
            case ConnectionTerminated():
                self.retire()
                for stream_id in [one for one in self._streams if one > event.last_stream_id]:
                    self._fail(stream_id, Refused("the server goes away"))

    def _on_settings(self) -> None:
        first = self._limit == 0
        self._limit = min(self._h2.remote_settings.max_concurrent_streams, MOST_STREAMS)
        if first:
            self.on_ready()
        self.on_change(self)

    def _answer(self, stream: _Stream) -> None:
        if not stream.response.done():
            stream.response.set_result(Response(stream.status, stream.headers, stream.body))

    def _fail(self, stream_id: int, error: Exception, *, ended: bool = False) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.ended = ended
            if not stream.response.done():
                stream.response.set_exception(error)

    def _on_answered(self, stream_id: int) -> None:
        """The future of a response is done, or whoever waited was cancelled."""
        stream = self._streams.pop(stream_id)
        if stream.unsent:
            self._blocked.remove(stream_id)
        if self._transport is None:
            return
        if not stream.ended:
            self._h2.reset_stream(stream_id, ErrorCodes.CANCEL)
            self._schedule_flush()
        if not self.retired:
            self.on_change(self)
        self._close_if_done()

    # Output

    def _send_body(self, stream_id: int) -> bool:
        """Send as much of the body as the server's window takes. Return whether that was all."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.response.done():
            return True
        while stream.unsent:
            size = min(self._h2.local_flow_control_window(stream_id), self._h2.max_outbound_frame_size)
            if size <= 0:
                return False
            part, stream.unsent = stream.unsent[:size], stream.unsent[size:]
            self._h2.send_data(stream_id, part, end_stream=not stream.unsent)
        return True

    def _schedule_flush(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        data = self._h2.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    def _close_if_done(self) -> None:
        if self.retired and not self._streams:
            self._flush()
            super()._close_if_done()

    # Time

    def _tick(self) -> None:
        now = monotonic()
        self._timer = self._loop.call_later(_TICK, self._tick)
        overdue = [stream for stream in self._streams.values() if stream.deadline <= now]
        for stream in overdue:
            if not stream.response.done():
                stream.response.set_exception(Lost("no answer in time"))
        if self._pinged is not None and now - self._pinged > PONG_WITHIN:
            self.abort()
        elif self._pinged is None and now - self._heard > (SILENCE if self._streams else IDLE):
            self._pinged = now
            self._h2.ping(b"weirping")
            self._flush()
