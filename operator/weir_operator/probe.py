"""Whether Redis keeps its promise: written to, and waited for, as an edge does it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from redis.exceptions import MovedError, RedisError, ResponseError

from weir.store import keys, topology
from weir.store.records import StoreError
from weir.store.url import Node, parse
from weir_operator.status import StoreHealth

_LIMIT = 8.0
_SYNC_MS = 2500
_NOT_SYNCED = "Redis has not synced a write to disk within 2.5 s"
_LOOK_AGAIN = 0.1
_KEY = "weir:probe"
_UNIT = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """Where Redis is as the operator sees it, and what it promises."""

    url: str
    password: str | None = field(repr=False)
    durability: str
    replicas: int
    replica_timeout: str


async def probe(target: StoreTarget, namespace: str) -> StoreHealth:
    """Never raises: whatever is wrong is the answer."""
    try:
        async with asyncio.timeout(_LIMIT):
            return await _probe(target, namespace)
    except StoreError as error:
        return StoreHealth(False, False, "StoreMisconfigured", str(error))
    except TimeoutError:
        return StoreHealth(False, False, "StoreUnreachable", f"Redis did not answer within {_LIMIT:.0f} s")
    except (OSError, RedisError) as error:
        return StoreHealth(False, False, "StoreUnreachable", f"Redis cannot be reached: {_plain(error)}")


async def _probe(target: StoreTarget, namespace: str) -> StoreHealth:
    url = parse(target_url(target, namespace))
    if target.password is not None:
        url = replace(url, password=target.password)
    where = topology.make(url, deadline=_LIMIT)
    try:
        shortfalls = [await _write(where, node, target) for node in await where.masters()]
    finally:
        await where.close()
    found = [text for text in shortfalls if text is not None]
    if found:
        return StoreHealth(True, False, "NotDurable", found[0])
    proofs = {
        "everysec": "a write was waited for until it was on disk; others are within a second",
        "fsync": "a write was waited for until it was on disk",
        "replicated": f"a write was waited for until {target.replicas} replicas had it",
    }
    return StoreHealth(True, True, "Proved", proofs[target.durability])


async def _write(where: topology.Topology, node: Node, target: StoreTarget) -> str | None:
    """None when the promise was kept, else what was missing."""
    async with where.admin(node) as opened:
        client: Any = opened
        if not await _set(client):
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


async def _set(client: Any) -> bool:
    """A key of this node: in a cluster, one of the partitions whose slot it owns. False when it has none of them."""
    for key in (_KEY, *(f"{tag.decode()}:probe" for tag in keys.TAGS)):
        try:
            await client.execute_command("SET", key, "1", "PX", 60_000)
            return True
        except MovedError:
            continue
    return False


async def _persisted(client: Any) -> str | None:
    """What WAITAOF would say: a sync may be under way just now, and has as long to end."""
    end = asyncio.get_running_loop().time() + _SYNC_MS / 1000
    while True:
        info: Mapping[str, Any] = await client.info("persistence")
        if not info.get("aof_enabled"):
            return "Redis keeps no append-only file"
        if info.get("aof_last_write_status") == "ok" and not info.get("aof_pending_bio_fsync", 0):
            return None
        if asyncio.get_running_loop().time() > end:
            return _NOT_SYNCED
        await asyncio.sleep(_LOOK_AGAIN)


def milliseconds(duration: str) -> int:
    match = re.fullmatch(r"(\d+)(ms|s|m|h|d)", duration)
    if match is None:
        raise StoreError(f"{duration} is not a duration")
    return int(match[1]) * _UNIT[match[2]]


def target_url(target: StoreTarget, namespace: str) -> str:
    """Bare host names are Services of the router's namespace, which the operator is usually not in."""
    scheme, mark, rest = target.url.partition("://")
    place, slash, path = rest.partition("/")
    credentials, at, hosts = place.rpartition("@")
    qualified = ",".join(re.sub(r"^([^.:\[\]]+)(:\d+)?$", rf"\1.{namespace}.svc\2", host) for host in hosts.split(","))
    return f"{scheme}{mark}{credentials}{at}{qualified}{slash}{path}"


def _plain(error: Exception) -> str:
    """Redis' own words, without addresses that they may carry."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    text = re.sub(r"[Ee]rror \d+ connecting to \S+\.?\s*", "", text)
    return re.sub(r"\S+:\d+", "…", text).strip() or type(error).__name__
