"""The sweeper: finishes what an edge that died has left half done, and removes what points to nothing.

    token marked as deleted          its subscriptions are deleted, then the token
    index of a notifier              freed when its subscription is gone
    subscription without its index   gets it back; or is deleted when another subscription has the notifier. Redis may
                                     have lost the index in a fail-over
    entry of a device's record       removed when its token is gone or has another device
    inbox of a dead edge             deleted

One edge at a time sweeps, under a lock. No token or subscription expires: a device deletes them, or is told that its
token is INVALID.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from weir.notifier.store.core import OK, Core
from weir.notifier.store.packing import TokenLetter
from weir.notifier.store.sealing import Damaged
from weir.notifier.store.tokens import Tokens, free_notifier
from weir.redis.connection import ReplyError
from weir.runtime.state.placement import ID_LENGTH
from weir.runtime.state.scan import Scan

_DELETED = TokenLetter.DELETED.value.encode()


@dataclass(frozen=True, slots=True)
class Swept:
    cursor: int  # 0 when the round is complete
    removed: int
    damaged: int


class Sweeper:
    def __init__(self, core: Core, tokens: Tokens) -> None:
        self._core = core
        self._keys = core.keys
        self._tokens = tokens
        self._scan = Scan(core, core.keys)

    async def sweep_slice(self, cursor: int) -> Swept | None:
        """Sweep some keys, starting with cursor 0. None while another edge has the lock."""
        if not await self._scan.lock():
            return None
        found = await self._scan.slice(cursor)
        work: list[Coroutine[Any, Any, bool]] = []
        for p, letter, name in found.partitions:
            match letter:
                case b"t":
                    work.append(self._finish_deletion(p, name))
                case b"s":
                    work.append(self._check_index(p, name))
                case b"x":
                    work.append(self._free_notifier(p, name))
                case b"d":
                    work.append(self._check_device(p, name))
                case b"i":
                    work.append(self._drop_inbox(p, name))
        removed = damaged = 0
        for result in await asyncio.gather(*work, return_exceptions=True):
            if isinstance(result, ReplyError | Damaged):
                damaged += 1  # a damaged record must not stop the sweep
            elif isinstance(result, BaseException):
                raise result
            else:
                removed += result
        return Swept(found.following, removed, damaged)

    async def stop_sweeping(self) -> None:
        await self._scan.unlock()

    async def _finish_deletion(self, p: int, token_id: bytes) -> bool:
        if await self._core.read(p, b"HGET", self._keys.token(p, token_id), b"u") != _DELETED:
            return False
        await self._tokens.finish_deletion(token_id)
        return True

    async def _free_notifier(self, p: int, name: bytes) -> bool:
        server_id, notifier_id = name[:ID_LENGTH], name[ID_LENGTH:]
        index = self._keys.notifier(p, server_id, notifier_id)
        sub_id, expires = await asyncio.gather(self._core.read(p, b"GET", index), self._core.read(p, b"PTTL", index))
        if sub_id is None or expires >= 0:
            return False  # gone, or its subscription is being made
        at = self._core.partition(sub_id)
        if await self._core.ask(at, b"EXISTS", self._keys.subscription(at, sub_id)):
            return False
        await free_notifier(self._core, server_id, notifier_id, sub_id)
        return True

    async def _check_index(self, p: int, sub_id: bytes) -> bool:
        core = self._core
        server_id, notifier_id = await core.read(p, b"HMGET", self._keys.subscription(p, sub_id), b"s", b"n")
        if server_id is None:
            return False
        at = core.partition(server_id + notifier_id)
        index = self._keys.notifier(at, server_id, notifier_id)
        if await core.read(at, b"GET", index) == sub_id:
            return False
        if await core.call(at, "keep_notifier", [index], [sub_id]) != OK:
            await core.call(p, "unsubscribe", [self._keys.subscription(p, sub_id)], [])
        elif not await core.ask(p, b"EXISTS", self._keys.subscription(p, sub_id)):
            await free_notifier(core, server_id, notifier_id, sub_id)  # deleted meanwhile
        return True

    async def _check_device(self, p: int, device_hash: bytes) -> bool:
        return await self._tokens.check_device(p, device_hash)

    async def _drop_inbox(self, p: int, edge: bytes) -> bool:
        await self._scan.drop_inbox(p, edge)
        return False
