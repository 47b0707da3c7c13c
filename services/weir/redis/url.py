"""Redis URLs: redis://, rediss:// (TLS), unix://, redis+sentinel://h1,h2/name, redis+cluster://h1,h2."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit

from weir.redis.errors import StoreError

Kind = Literal["single", "sentinel", "cluster"]
_DEFAULT_PORT = {"single": 6379, "sentinel": 26379, "cluster": 6379}


@dataclass(frozen=True, slots=True)
class Node:
    """A TCP address, or a Unix socket (`path`)."""

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        return self.path or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    kind: Kind
    nodes: tuple[Node, ...]
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    tls: bool = False
    ca_file: str | None = None
    verify: bool = True
    master: str = ""  # Sentinel's name for the master
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)
    password_file: Path | None = None

    def current_password(self) -> str | None:
        """The password to connect with now. Raises OSError.

        The first line of the file, if there is one. The file is read for each connection, because a password may be
        rotated while its clients run.
        """
        if self.password_file is None:
            return self.password
        return self.password_file.read_text("utf-8", errors="replace").partition("\n")[0].strip()

    def ssl_context(self) -> ssl.SSLContext | None:
        if not self.tls:
            return None
        context = ssl.create_default_context(cafile=self.ca_file)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def parse(url: str) -> RedisUrl:
    """Raises StoreError; the text never repeats a password."""
    try:
        parts = urlsplit(url)
        scheme, _, variant = parts.scheme.partition("+")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        credentials, _, hosts = parts.netloc.rpartition("@")
        user, _, password = credentials.partition(":")
        common = {
            "username": unquote(user) or None,
            "password": unquote(password) or None,
            "tls": scheme == "rediss",
            "ca_file": query.get("ca"),
            "verify": query.get("verify", "yes") not in ("no", "none", "false", "0"),
            "sentinel_username": query.get("sentinel_username"),
            "sentinel_password": query.get("sentinel_password"),
        }
        if scheme == "unix" and not variant:
            return RedisUrl("single", (Node(path=unquote(parts.path)),), db=int(query.get("db", 0)), **common)  # type: ignore[arg-type]
        kinds: dict[str, Kind] = {"": "single", "sentinel": "sentinel", "cluster": "cluster"}
        if scheme not in ("redis", "rediss") or variant not in kinds or not hosts:
            raise ValueError("expected redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://")
        kind = kinds[variant]
        nodes = tuple(_node(host, _DEFAULT_PORT[kind]) for host in hosts.split(","))
        words = [unquote(word) for word in parts.path.split("/") if word]
        if kind == "sentinel":
            if not words:
                raise ValueError("the master's name is missing")
            return RedisUrl(kind, nodes, master=words[0], db=int(words[1]) if len(words) > 1 else 0, **common)  # type: ignore[arg-type]
        if kind == "cluster" and words:
            raise ValueError("a cluster has one database")
        if kind == "single" and len(nodes) > 1:
            raise ValueError("one host, or redis+cluster:// or redis+sentinel://")
        return RedisUrl(kind, nodes, db=int(words[0]) if words else 0, **common)  # type: ignore[arg-type]
    except ValueError as error:
        raise StoreError(f"the Redis URL is not valid: {error}") from error


def _node(text: str, default: int) -> Node:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return Node(host, int(rest[1:]) if rest else default)
    host, _, port = text.partition(":")
    if not host:
        raise ValueError("a host is missing")
    return Node(host, int(port) if port else default)
