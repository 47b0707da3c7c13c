"""Probe Redis: write a key, and wait until the write is as durable as the router's spec asks, as an edge does it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import MovedError, RedisError, ResponseError

from weir.redis.connect import make_topology
from weir.redis.errors import StoreError
from weir.redis.partitions import Partitions
from weir.redis.topology import Topology
from weir.redis.url import Node, parse
from weir_operator.kinds.routers.status import StoreHealth

_LIMIT = 8.0
_SYNC_MS = 2500
_NOT_SYNCED = "Redis has not synced a write to disk within 2.5 s"
_POLL_SECONDS = 0.1
_UNIT = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """Where the operator reaches Redis, and the durability that the spec asks for."""

    url: str
    password: str | None = field(repr=False)
    durability: str
    replicas: int
    replica_timeout: str
    prefix: str = ""  # of the router's keys


async def probe(target: StoreTarget, namespace: str) -> StoreHealth:
    """Probe every master. Failures are part of the answer, so this never raises."""
    try:
        async with asyncio.timeout(_LIMIT):
            return await _probe(target, namespace)
    except StoreError as error:
        return StoreHealth(False, False, "StoreMisconfigured", str(error))
    except TimeoutError:
        return StoreHealth(False, False, "StoreUnreachable", f"Redis did not answer within {_LIMIT:.0f} s")
    except (OSError, RedisError) as error:
        return StoreHealth(False, False, "StoreUnreachable", f"Redis cannot be reached: {_plain(error)}")


async def accepts(target: StoreTarget, namespace: str) -> bool:
    """Whether Redis accepts the password. Like `probe`, this never raises."""
    try:
        async with asyncio.timeout(_LIMIT):
            where = _topology(target, namespace)
            try:
                for node in await where.masters():
                    await where.info(node)
            finally:
                await where.close()
    except (StoreError, OSError, RedisError):
        return False
    return True


def _topology(target: StoreTarget, namespace: str) -> Topology:
    url = parse(target_url(target, namespace))
    if target.password is not None:
        url = replace(url, password=target.password)
    return make_topology(url, deadline=_LIMIT)


async def _probe(target: StoreTarget, namespace: str) -> StoreHealth:
    where = _topology(target, namespace)
    try:
        shortfalls = [await _write(where, node, target) for node in await where.masters()]
    finally:
        await where.close()
    found = [text for text in shortfalls if text is not None]
    if found:
        return StoreHealth(True, False, "NotDurable", found[0])
    proofs = {
        "everysec": "a write reached the disk; Redis syncs every second",
        "fsync": "a write reached the disk",
        "replicated": f"a write reached {target.replicas} replicas",
    }
    return StoreHealth(True, True, "Proved", proofs[target.durability])


async def _write(where: Topology, node: Node, target: StoreTarget) -> str | None:
    """Write to one master. Return None when the write became durable, else what was missing."""
    async with where.admin(node) as opened:
        client: Any = opened
        if not await _set(client, Partitions(target.prefix)):
            return None
        if target.durability == "replicated":
            limit = milliseconds(target.replica_timeout)
            reached = int(await client.execute_command("WAIT", target.replicas, limit))
            if reached >= target.replicas:
                return None
            return f"{reached} of {target.replicas} replicas had a write after {target.replica_timeout}"
        try:
            reached, _ = await client.execute_command("WAITAOF", 1, 0, _SYNC_MS)
            return None if int(reached) >= 1 else _NOT_SYNCED
        except ResponseError as error:
            # Without an append-only file WAITAOF is refused; before Redis 7.2 it is unknown.
            if "unknown command" not in str(error).lower():
                return f"Redis keeps no append-only file: {_plain(error)}"
        return await _persisted(client)


async def _set(client: Any, partitions: Partitions) -> bool:
    """Write a key that this node owns. In a cluster that is a key of a partition whose slot is here. False: there is
    none."""
    for name in (partitions.name, *partitions.tags):
        try:
            await client.execute_command("SET", name + b":probe", "1", "PX", 60_000)
            return True
        except MovedError:
            continue
    return False


async def _persisted(client: Any) -> str | None:
    """Ask what WAITAOF would answer, on servers without it. A running sync gets as much time to end."""
    end = asyncio.get_running_loop().time() + _SYNC_MS / 1000
    while True:
        info: Mapping[str, Any] = await client.info("persistence")
        if not info.get("aof_enabled"):
            return "Redis keeps no append-only file"
        if info.get("aof_last_write_status") == "ok" and not info.get("aof_pending_bio_fsync", 0):
            return None
        if asyncio.get_running_loop().time() > end:
            return _NOT_SYNCED
        await asyncio.sleep(_POLL_SECONDS)


def milliseconds(duration: str) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", duration)
    if match is None:
        raise StoreError(f"{duration} is not a duration")
    return int(match[1]) * _UNIT[match[2]]


def target_url(target: StoreTarget, namespace: str) -> str:
    """The URL with bare host names qualified. They are Services of the router's namespace, and the operator is usually
    in another."""
    scheme, mark, rest = target.url.partition("://")
    place, slash, path = rest.partition("/")
    credentials, at, hosts = place.rpartition("@")
    qualified = ",".join(re.sub(r"^([^.:\[\]]+)(:\d+)?$", rf"\1.{namespace}.svc\2", host) for host in hosts.split(","))
    return f"{scheme}{mark}{credentials}{at}{qualified}{slash}{path}"


def _plain(error: Exception) -> str:
    """The message of an error without the addresses in it."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    text = text.splitlines()[0]
    text = re.sub(r"[Ee]rror \d+ connecting to \S+\.?\s*", "", text)
    return re.sub(r"\S+:\d+", "…", text).strip() or type(error).__name__
