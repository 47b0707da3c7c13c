"""Opening and checking the Redis of a deployment."""

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from weir.redis.connect import connect
from weir.redis.durability import Mode
from weir.redis.errors import StoreError
from weir.redis.partitions import Partitions
from weir.redis.scripts import Folders
from weir.redis.topology import Topology
from weir.redis.url import parse
from weir.runtime.state.calls import Calls


class RedisSettings(Protocol):
    """What a store's configuration says about Redis. All times are in seconds."""

    @property
    def url(self) -> str: ...
    @property
    def password(self) -> str | None:
        """Overrides the password in the URL."""

    @property
    def password_file(self) -> Path | None:
        """Overrides both; read for each connection."""

    @property
    def durability(self) -> Mode: ...
    @property
    def replicas(self) -> int: ...
    @property
    def replication_limit(self) -> float: ...
    @property
    def deadline(self) -> float: ...
    @property
    def connect_timeout(self) -> float: ...


async def open_topology(config: RedisSettings, lua: Folders, partitions: Partitions, *, patient: bool) -> Topology:
    """Connect to Redis; with `patient`, wait for a Redis that starts or fails over. Raises StoreError or OSError."""
    url = parse(config.url)
    if config.password:
        url = replace(url, password=config.password)
    url = replace(url, password_file=config.password_file)
    try:
        return await connect(
            url,
            lua=lua,
            partitions=partitions,
            deadline=config.deadline,
            mode=config.durability,
            replicas=config.replicas,
            replication_limit=config.replication_limit,
            limit=config.connect_timeout,
            patience=config.connect_timeout if patient else 0.0,
        )
    except OSError as error:
        raise unreachable(config.url, error) from error


def unreachable(url: str, error: OSError) -> StoreError:
    return StoreError(
        f"Redis at {', '.join(map(str, parse(url).nodes))} cannot be reached: {str(error) or 'no answer'}"
    )


async def check_key(calls: Calls, key: bytes, check: bytes, message: str) -> None:
    """Compare a check value with the one stored at `key`, or store it. Raises StoreError when it is another one."""
    found = await calls.ask_registry(b"GET", key)
    if found is None:  # a deployment that exists starts its edges also while Redis is full or cannot write
        await calls.ask_registry(b"SET", key, check, b"NX")
        found = await calls.ask_registry(b"GET", key)
    if found != check:
        raise StoreError(message)
