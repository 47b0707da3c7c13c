"""The control port: a line protocol over TCP for whoever runs the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weir.surface.control.backoff import Backoff
from weir.surface.control.session import Session

_MAX_LINE = 4096
_MAX_SESSIONS = 16


class ControlPort:
    def __init__(self, server: asyncio.Server, sessions: set[asyncio.StreamWriter]) -> None:
        self._server = server
        self._sessions = sessions
        self.port: int = server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        for writer in list(self._sessions):
            writer.close()
        await self._server.wait_closed()


async def open_port(listen: str, port: int, greeting: str, new_session: Callable[[], Session]) -> ControlPort:
    sessions: set[asyncio.StreamWriter] = set()
    backoff = Backoff()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(sessions) >= _MAX_SESSIONS:
            writer.write(b"error: too many sessions\n")
            writer.close()
            return
        sessions.add(writer)
        session = new_session()
        peer = writer.get_extra_info("peername")  # None: the client has gone already
        session.address, session.backoff = peer[0] if peer else "", backoff
        try:
            await _converse(greeting, session, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            sessions.discard(writer)
            writer.close()

    return ControlPort(await asyncio.start_server(serve, listen, port, limit=_MAX_LINE), sessions)


async def _converse(
    greeting: str, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    writer.write(f"{greeting}\n'help' for supported commands\n".encode())
    while data := await reader.readuntil(b"\n"):
        line = data.decode("utf-8", "replace").strip()
        if line.partition(" ")[0] == "quit":
            break
        async for text in session.answer(line):
            writer.write(f"{text}\n".encode())
        await writer.drain()
