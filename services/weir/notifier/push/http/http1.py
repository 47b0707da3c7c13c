"""HTTP/1.1 on the event loop, for push servers without HTTP/2. The protocol itself is h11's."""

from __future__ import annotations

import asyncio
import logging
from asyncio import Future
from collections.abc import Callable

import h11

from weir.notifier.push.http.exchange import LARGEST_RESPONSE, Connection, Lost, Request, Response
from weir.telemetry.errors import describe

_log = logging.getLogger(__name__)

_LARGEST = 8 * LARGEST_RESPONSE  # with headers, and with everything that is not part of the body


class Http1(Connection):
    """One request at a time; the connection is kept for the next one."""

    def __init__(self, on_ready: Callable[[], None], on_change: Callable[[Connection], None]) -> None:
        super().__init__(on_ready, on_change)
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_RESPONSE)
        self._response: Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._head: h11.Response | None = None
        self._body = b""
        self._received = 0  # bytes, since the last response

    # Connection

    @property
    def room(self) -> int:
        return 0 if self.retired or self._response is not None else 1

    @property
    def in_flight(self) -> int:
        return int(self._response is not None)

    def send(self, request: Request, timeout: float) -> Future[Response]:
        head = h11.Request(
            method="POST",
            target=request.path,
            headers=[
                (b"host", request.origin.authority),
                (b"content-length", b"%d" % len(request.body)),
                *request.headers,
            ],
        )
        events = (head, h11.Data(data=request.body), h11.EndOfMessage())
        data = b"".join(self._h11.send(event) or b"" for event in events)
        assert self._transport is not None
        self._transport.write(data)
        response: Future[Response] = self._loop.create_future()
        response.add_done_callback(self._on_answered)
        self._response = response
        self._timer = self._loop.call_later(timeout, self._fail, Lost("no answer in time"))
        return response

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.on_ready()

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > _LARGEST:
            self.abort()
        else:
            self._receive(data)

    def eof_received(self) -> None:
        self._receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(Lost("the connection ended"))
        super().connection_lost(exc)

    def _receive(self, data: bytes) -> None:
        try:
            self._h11.receive_data(data)
            while self._on_event(self._h11.next_event()):
                pass
        except h11.RemoteProtocolError as error:
            _log.debug("a push service broke the protocol: %s", describe(error))
            self.abort()

    def _on_event(self, event: object) -> bool:
        """Return whether there may be a further event."""
        match event:
            case h11.Response():
                self._head = event
            case h11.Data():
                self._body += event.data
                if len(self._body) > LARGEST_RESPONSE:
                    self.retired = True
                    self._answer()
                    return False
            case h11.EndOfMessage():
                self._answer()
                return False
            case h11.ConnectionClosed():
                self.abort()
                return False
            case h11.InformationalResponse():
                pass
            case _:  # h11.NEED_DATA, h11.PAUSED
                return False
        return True

    def _answer(self) -> None:
        if self._response is not None and not self._response.done() and self._head is not None:
            headers = dict(self._head.headers)
            self._response.set_result(Response(self._head.status_code, headers, self._body))

    def _fail(self, error: Lost) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(error)

    def _on_answered(self, response: Future[Response]) -> None:
        """The response is there, or nobody waits for it any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._response, self._head, self._body, self._received = None, None, b"", 0
        if self._transport is None:
            return
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE and not self.retired:
            self._h11.start_next_cycle()
            self.on_change(self)
        else:
            self.retired = True
            self._transport.abort()
