"""The streams of rollups, read with redis-py's own clients: on one Redis, with Sentinel, or on a cluster.

Reading takes XLEN, XRANGE and XREVRANGE. Nothing is written, so a user of Redis with these rights is enough.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    RedisClusterException,
    RedisError,
    ResponseError,
)
from redis.sentinel import MasterNotFoundError, Sentinel

from weir.pipeline.errors import PipelineError
from weir.pipeline.ingest.ids import Extent, Id, Range
from weir.redis.errors import StoreError
from weir.redis.partitions import Partitions
from weir.redis.url import RedisUrl, parse
from weir.runtime.state.keys import CommonKeys

FAILURE: Final = "Redis at "
"""How the text begins of every error that is raised about a connection."""
_PAGE: Final = 500
_LIMIT: Final = 10.0  # seconds, for a connection and for an answer


@dataclass(frozen=True)
class Registry:
    """Where the edges of one router publish: its Redis, and the prefix of its keys there."""

    url: str
    prefix: str = ""
    password: str | None = None
    """Instead of the one in the URL."""
    password_file: str | None = None
    """Instead of both. The file is read for each connection."""

    @property
    def redis_url(self) -> RedisUrl:
        """Raises PipelineError."""
        try:
            url = parse(self.url)
        except StoreError as error:
            raise PipelineError(str(error)) from None
        if self.password is not None:
            url = replace(url, password=self.password)
        if self.password_file is not None:
            url = replace(url, password_file=Path(self.password_file))
        return url

    @property
    def key(self) -> bytes:
        return CommonKeys(Partitions(self.prefix)).rollups

    @property
    def place(self) -> str:
        """The address of Redis, without credentials."""
        url = self.redis_url
        return ",".join(map(str, url.nodes)) + (f"/{url.master}" if url.master else "")

    @property
    def name(self) -> str:
        """The name of the stream in offsets and tables. The same as long as address and prefix are."""
        url = self.redis_url
        return f"{self.place}{f'/{url.db}' if url.db else ''}{f'#{self.prefix}' if self.prefix else ''}"


def to_text(registries: Iterable[Registry]) -> str:
    return json.dumps([asdict(registry) for registry in registries])


def from_text(text: str) -> list[Registry]:
    return [Registry(**each) for each in json.loads(text)]


class Stream:
    """One stream, on an open connection."""

    def __init__(self, client: Any, registry: Registry) -> None:
        self._client = client
        self._key = registry.key

    def extent(self) -> Extent | None:
        """Return the extent of the stream at present; None if the stream is empty."""
        first = self._client.xrange(self._key, count=1)
        last = self._client.xrevrange(self._key, count=1)
        if not first or not last:
            return None
        return Extent(_id(first[0]), _id(last[0]), self._client.xlen(self._key))

    def pages(self, part: Range) -> Iterator[list[tuple[Id, dict[bytes, bytes]]]]:
        start = part.start
        while start < part.end:
            page = self._client.xrange(self._key, str(start.next()), str(part.end), count=_PAGE)
            if not page:
                return
            yield [(_id(entry), entry[1]) for entry in page]
            if len(page) < _PAGE:
                return
            start = _id(page[-1])


def _id(entry: Any) -> Id:
    return Id.parse(entry[0].decode())


@contextlib.contextmanager
def open_stream(registry: Registry) -> Iterator[Stream]:
    """Connect. Failures of Redis, also later ones, are raised as PipelineError."""
    try:
        url = registry.redis_url
        with contextlib.closing(_client(url)) as client:
            yield Stream(client, registry)
    except (RedisError, RedisClusterException, OSError, StoreError) as error:
        raise PipelineError(f"{FAILURE}{registry.place}: {_reason(error)}") from None


def _client(url: RedisUrl) -> Any:
    options: dict[str, Any] = {
        "username": url.username,
        "password": url.current_password(),
        "socket_timeout": _LIMIT,
        "socket_connect_timeout": _LIMIT,
        "protocol": 2,
    }
    secure: dict[str, Any] = {}
    if url.tls:
        secure = {"ssl": True, "ssl_ca_certs": url.ca_file}
        if not url.verify:
            secure |= {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    first = url.nodes[0]
    if url.kind == "cluster":
        nodes = [ClusterNode(node.host, node.port) for node in url.nodes]  # type: ignore[no-untyped-call]
        return RedisCluster(startup_nodes=nodes, **options, **secure)
    if url.kind == "sentinel":
        asked = {
            **options,
            **secure,
            "username": url.sentinel_username,
            "password": url.sentinel_password,
        }
        sentinels = [(node.host, node.port) for node in url.nodes]
        sentinel = Sentinel(sentinels, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
        return sentinel.master_for(url.master, db=url.db, **options, **secure)  # type: ignore[no-untyped-call]
    if first.path:
        return redis.Redis(unix_socket_path=first.path, db=url.db, **options)
    return redis.Redis(host=first.host, port=first.port, db=url.db, **options, **secure)


def _reason(error: Exception) -> str:
    """Say in a few words, without a password, what is wrong."""
    text = str(error)
    if isinstance(error, AuthenticationError) or re.search("WRONGPASS|NOAUTH|uthentication required", text):
        return "the password is missing or wrong"
    if isinstance(error, (NoPermissionError, AuthorizationError)):
        return "its access list lacks a right (XLEN, XRANGE and XREVRANGE are needed)"
    if isinstance(error, MasterNotFoundError):
        return "no Sentinel names a master"
    if isinstance(error, ResponseError):
        return f"it answers {text}"
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, RedisClusterException):
        return "it is no cluster, or none of its nodes answers"
    return "it does not answer"
