"""The Redis nodes that serve partitions: one master, the master that Sentinel names, or the masters of a Cluster."""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import hiredis

from weir.redis.connection import ReplyError
from weir.redis.durability import Durability
from weir.redis.errors import StoreError
from weir.redis.failures import Failures
from weir.redis.lookup import look_up
from weir.redis.mux import Mux
from weir.redis.partitions import Partitions
from weir.redis.resp import command
from weir.redis.scripts import Folders, Scripts
from weir.redis.sentinel import Sentinels
from weir.redis.url import Node, RedisUrl
from weir.telemetry.errors import log_mistake

if TYPE_CHECKING:
    import redis.asyncio as aioredis

_log = logging.getLogger(__name__)

_DIAL_LIMIT = 3.0
_WATCH_EVERY = 2.0  # seconds between two questions to Sentinel while connected


class Topology(ABC):
    """`muxes[p]` is the connection to the node of partition p, `muxes[REGISTRY]` to the node of the registry's keys."""

    def __init__(
        self, url: RedisUrl, *, deadline: float, lua: Folders = (), partitions: Partitions | None = None
    ) -> None:
        self.url = url
        self.partitions = partitions or Partitions()
        self.muxes: list[Mux] = []
        self.deadline = deadline
        self.scripts = Scripts(lua)
        self.durability: Durability | None = None
        self.failures = Failures()
        self.on_up: Callable[[], None] = lambda: None
        self.on_down: Callable[[], None] = lambda: None
        self.on_round_trip: Callable[[float], None] = lambda _seconds: None
        self.on_replaced: Callable[[], None] = lambda: None  # connections to a node that still answers must end
        self.version = (0, 0)
        self._lua = lua
        self._ssl = url.ssl_context()
        self._refreshing: asyncio.Task[None] | None = None

    @property
    def nodes(self) -> list[Mux]:
        """Each mux once."""
        return list(dict.fromkeys(self.muxes))

    @abstractmethod
    async def open(self) -> None: ...

    async def masters(self) -> list[Node]:
        return [await self.master(0)]

    async def probe(self) -> None:
        """Find out the version of the nodes. Call it before `open`: the scripts depend on it."""
        versions = [(await self.info(node))["redis_version"] for node in await self.masters()]
        self.version = min(_version(v) for v in versions)
        if self.version < (6, 2):
            raise StoreError("Redis 6.2 or later is needed")
        cluster = self.url.kind == "cluster"
        self.scripts = Scripts(self._lua, cluster=cluster, sharded=cluster and self.version >= (7, 0))

    async def info(self, node: Node) -> dict[str, str]:
        """INFO server. This does not use redis-py, which takes longer to import than all the rest of `probe`."""
        await look_up(node, _DIAL_LIMIT)
        async with asyncio.timeout(_DIAL_LIMIT):
            if node.path:
                reader, writer = await asyncio.open_unix_connection(node.path)
            else:
                name = node.host if self._ssl is not None else None
                reader, writer = await asyncio.open_connection(
                    node.host, node.port, ssl=self._ssl, server_hostname=name
                )
            try:
                parser = hiredis.Reader(replyError=ReplyError)
                writer.write(self.login() + command(b"INFO", b"server"))
                while True:
                    data = await reader.read(65536)
                    if not data:
                        raise OSError("Redis closed the connection")
                    parser.feed(data)
                    while (reply := parser.gets()) is not False:
                        if isinstance(reply, ReplyError):
                            if reply.code == "LOADING":
                                raise OSError("Redis is still loading its data")
                            raise StoreError(f"Redis refuses the connection: {reply}")
                        if reply != b"OK":
                            lines = reply.decode().splitlines()
                            return dict(line.split(":", 1) for line in lines if ":" in line)
            finally:
                writer.close()

    @abstractmethod
    async def master(self, p: int) -> Node:
        """The node that serves a place at present."""

    @abstractmethod
    def reconcile(self) -> None:
        """A node was lost: find out again which node serves what."""

    async def close(self) -> None:
        if self._refreshing is not None:
            self._refreshing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._refreshing
        for mux in self.nodes:
            await mux.close()

    @contextlib.asynccontextmanager
    async def admin(self, node: Node) -> "AsyncIterator[aioredis.Redis]":
        """A redis-py client, for topology and administration."""
        await look_up(node, _DIAL_LIMIT)
        async with self._client(node) as client:
            try:
                yield client
            except RuntimeError as error:  # from uvloop, through redis-py, for a connection that has just closed
                raise OSError("Redis closed the connection") from error

    def _client(self, node: Node) -> "aioredis.Redis":
        import redis.asyncio as aioredis

        common: dict[str, Any] = {
            "username": self.url.username,
            "password": self.url.current_password(),
            "db": self.url.db,
            "socket_timeout": _DIAL_LIMIT,
            "socket_connect_timeout": _DIAL_LIMIT,
        }
        if node.path:
            return aioredis.Redis(unix_socket_path=node.path, **common)
        if self._ssl is not None:
            common |= {
                "ssl": True,
                "ssl_ca_certs": self.url.ca_file,
                "ssl_cert_reqs": "required" if self.url.verify else "none",
                "ssl_check_hostname": self.url.verify,
            }
        return aioredis.Redis(host=node.host, port=node.port, **common)

    def login(self) -> bytes:
        password = self.url.current_password()
        if password is None:
            return b""
        user = [self.url.username.encode()] if self.url.username else []
        return command(b"AUTH", *user, password.encode())

    def greeting(self) -> list[bytes]:
        """The commands that a new connection starts with."""
        login = self.login()
        words = [login] if login else []
        if self.url.db:
            words.append(command(b"SELECT", self.url.db))
        words.append(command(b"CLIENT", b"SETNAME", b"weir"))
        return words + [command(b"SCRIPT", b"LOAD", text) for text in self.scripts.texts.values()]

    async def dial(self, node: Node, protocol: asyncio.Protocol) -> None:
        loop = asyncio.get_running_loop()
        await look_up(node, _DIAL_LIMIT)
        async with asyncio.timeout(_DIAL_LIMIT):
            if node.path:
                await loop.create_unix_connection(lambda: protocol, node.path)
            else:
                name = node.host if self._ssl is not None else None
                await loop.create_connection(
                    lambda: protocol, node.host, node.port, ssl=self._ssl, server_hostname=name
                )


class OneMaster(Topology):
    """A single Redis, or the master that Sentinel names.

    Sentinel is asked at every dial, and while connected: a master that is cut off from Sentinel and from its replicas,
    but not from this edge, does not hear that another one took its place, and answers until Sentinel reaches it.
    """

    def __init__(
        self, url: RedisUrl, *, deadline: float, lua: Folders = (), partitions: Partitions | None = None
    ) -> None:
        super().__init__(url, deadline=deadline, lua=lua, partitions=partitions)
        self._sentinels = Sentinels(url) if url.kind == "sentinel" else None
        self._watching: asyncio.Task[None] | None = None
        self._dialled: Node | None = None

    def reconcile(self) -> None:
        """The next dial finds the master."""

    async def master(self, p: int = 0) -> Node:
        return self.url.nodes[0] if self._sentinels is None else await self._sentinels.master(_DIAL_LIMIT)

    async def open(self) -> None:
        async def dial(protocol: asyncio.Protocol) -> None:
            self._dialled = await self.master()
            await self.dial(self._dialled, protocol)

        mux = Mux(
            dial,
            self.greeting,
            deadline=self.deadline,
            durability=self.durability,
            on_up=lambda: self.on_up(),
            on_down=lambda: self.on_down(),
            on_round_trip=lambda seconds: self.on_round_trip(seconds),
            failures=self.failures,
        )
        self.muxes[:] = [mux] * len(self.partitions.tags)
        mux.start_soon()
        await mux.started
        if self._sentinels is not None:
            self._watching = asyncio.create_task(self._watch(self._sentinels))

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        await super().close()

    async def _watch(self, sentinels: Sentinels) -> None:
        while True:
            await asyncio.sleep(_WATCH_EVERY)
            try:
                master = await sentinels.latest(_DIAL_LIMIT)
            except Exception as error:
                log_mistake(_log, "asking Sentinel failed and starts again", error)
                continue
            if master is not None and master != self._dialled and self.muxes[0].connected:
                self.on_replaced()
                self.muxes[0].drop()


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
