"""A bound on something that many tasks need some of. Tasks wait in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    @property
    def used(self) -> int:
        return self._size - self._free

    @asynccontextmanager
    async def take(self, amount: int) -> AsyncIterator[None]:
        """Have some of the budget, but never more than all of it."""
        amount = min(amount, self._size)
        async with self._turn:
            while self._free < amount:
                self._freed.clear()
                await self._freed.wait()
            self._free -= amount
        try:
            yield
        finally:
            self._free += amount
            self._freed.set()
