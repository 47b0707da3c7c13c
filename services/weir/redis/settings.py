"""The section of a configuration that says where Redis is and what is stored there, the same for every program."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from weir.config import kinds
from weir.config.file import Problem
from weir.config.kinds import Kind, setting
from weir.config.schema import ConfigError, Places
from weir.redis.partitions import is_prefix

_PLACEMENT_KEY = Path("placement.key")


def _read_prefix(raw: object) -> str:
    if not isinstance(raw, str) or not is_prefix(raw):
        raise ValueError("expected a letter, and up to 30 letters, digits and hyphens, all lower case; or nothing")
    return raw


PREFIX: Kind[str] = Kind("name", _read_prefix)


@dataclass(frozen=True)
class Redis:
    url: str = setting(
        kinds.TEXT,
        "redis://127.0.0.1:6379/0",
        "redis://, rediss://, unix://, redis+sentinel://h1,h2/NAME or redis+cluster://h1,h2",
    )
    password: str | None = setting(kinds.TEXT, None, "password, if it is not in the URL")
    password_file: Path | None = setting(
        kinds.PATH, None, "file with the password; read for each connection, so that the password can be rotated"
    )
    prefix: str = setting(PREFIX, "", "name in front of all keys; routers with different prefixes can share one Redis")
    placement_key: Path = setting(kinds.PATH, _PLACEMENT_KEY, "file with the deployment's 32-byte placement key")
    durability: str = setting(
        kinds.choice("everysec", "fsync", "replicated"), "everysec", "what OK promises: see docs/scale.md"
    )
    replicas: int = setting(kinds.integer(1, 16), 1, "replicas that must confirm a write, with durability = replicated")
    replica_timeout: float = setting(
        kinds.DURATION, 1.0, "time to wait for the replicas before the sender gets an error"
    )
    command_timeout: float = setting(kinds.DURATION, 5.0, "time that a command waits for Redis before ERR INTERNAL")
    connect_timeout: float = setting(kinds.DURATION, 5.0, "time that a starting edge waits for Redis")
    lease: float = setting(kinds.DURATION, 10.0, "subscriptions of a crashed edge are free after this time")


R = TypeVar("R", bound=Redis)


def check(redis: Redis, places: Places) -> list[Problem]:
    if redis.lease >= 1:
        return []
    return [
        places.problem(
            "redis", "lease", "lease: at least 1s, because a short pause of Redis would disconnect all clients"
        )
    ]


def resolve(redis: R, base: Path) -> R:
    """Make relative paths relative to the directory of the configuration file."""
    password_file = base / redis.password_file if redis.password_file is not None else None
    return replace(redis, placement_key=base / redis.placement_key, password_file=password_file)


def read_key(path: Path, what: str) -> bytes:
    """Read a 32-byte key of the deployment, which is raw or hexadecimal text. `what` names the key in an error."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError([Problem(str(path), 0, f"cannot be read: {error.strerror}")]) from None
    if len(raw) != 32:
        try:
            raw = bytes.fromhex(raw.decode("ascii").strip())
        except ValueError:
            raw = b""
    if len(raw) != 32:
        raise ConfigError([Problem(str(path), 0, f"{what} is 32 bytes, raw or as 64 hexadecimal digits")])
    return raw
