"""A network between an edge and Redis that can fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.support.redis import discard, start_server
from weir.redis.embedded import Embedded


class Proxy:
    """Forwards TCP to a Redis, and can lose an answer, cut connections, refuse new ones, hold everything, be slow."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._lose: bytes | None = None
        self.refusing = False
        self.connections = 0
        self.lost = 0
        self.pause = 0.0  # seconds before every tenth answer; what follows on its connection waits behind it
        self._answers = 0

    @classmethod
    async def start(cls, url: str) -> "Proxy":
        host, _, port = url.removeprefix("redis://").partition(":")
        proxy = cls(host, int(port))
        proxy._server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
        return proxy

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def lose_answer_to(self, word: bytes) -> None:
        """The next command with this word reaches Redis; its answer is lost, and the connection with it."""
        self._lose = word

    def hold(self) -> None:
        """Let no data pass, without closing the connections."""
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            redis_reader, redis_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        doomed = asyncio.Event()
        for task in (
            asyncio.create_task(self._to_redis(reader, redis_writer, writer, doomed)),
            asyncio.create_task(self._to_edge(redis_reader, writer, redis_writer, doomed)),
        ):
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._writers |= {writer, redis_writer}

    async def _to_redis(
        self,
        reader: asyncio.StreamReader,
        redis_writer: asyncio.StreamWriter,
        writer: asyncio.StreamWriter,
        doomed: asyncio.Event,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 20):
                await self._open.wait()
                if self._lose is not None and self._lose in data:
                    self._lose = None
                    doomed.set()
                redis_writer.write(data)
        redis_writer.close()

    async def _to_edge(
        self,
        redis_reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        redis_writer: asyncio.StreamWriter,
        doomed: asyncio.Event,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await redis_reader.read(1 << 20):
                await self._open.wait()
                if doomed.is_set():
                    self.lost += 1
                    writer.transport.abort()
                    redis_writer.transport.abort()
                    break
                self._answers += 1
                if self.pause and self._answers % 10 == 0:
                    await asyncio.sleep(self.pause)
                writer.write(data)
        writer.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Embedded]:
    node = start_server(port=0)
    yield node
    discard(node)


@pytest.fixture
async def proxy(server: Embedded) -> AsyncIterator[Proxy]:
    proxy = await Proxy.start(server.url)
    yield proxy
    await proxy.close()
