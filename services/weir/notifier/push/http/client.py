"""POST with one retry on another connection.

A request that the server refused was not processed: sending it again pushes nothing twice, and is not the one retry.
A server that leaves does so on all connections at once, and the next connection may be one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weir.notifier.push.http.exchange import Forbidden, HttpError, Refused, Request, Response
from weir.notifier.push.http.pool import Pool

_ATTEMPTS: Final = 2
_REFUSALS: Final = 3


class Client:
    """`timeout` is for one attempt."""

    def __init__(self, pool: Pool, timeout: float) -> None:
        self.pool = pool
        self._timeout = timeout

    async def post(self, request: Request, is_transient: Callable[[Response], bool]) -> Response:
        """Send a request. After an error, or a response that `is_transient`, send it once more.

        The connection that failed takes no more requests, so the second attempt has another one. Raises HttpError when
        the second attempt fails too.
        """
        left, refusals = _ATTEMPTS - 1, _REFUSALS
        while True:
            try:
                connection = await self.pool.connection(request.origin)
            except HttpError as error:
                if not left or isinstance(error, Forbidden):
                    raise
                left -= 1
                continue
            try:
                response = await connection.send(request, self._timeout)
            except Refused:
                connection.retire()
                if not refusals:
                    raise
                refusals -= 1
                continue
            except HttpError:
                connection.retire()
                if not left:
                    raise
                left -= 1
                continue
            if not is_transient(response):
                return response
            connection.retire()
            if not left:
                return response
            left -= 1
