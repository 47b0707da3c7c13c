"""A value that is expensive to read and may be a moment old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Cached(Generic[T]):
    """Many viewers cost as much as one: concurrent callers share one reading, and later ones reuse it for a while."""

    def __init__(self, read: Callable[[], Awaitable[T]], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._value: T | None = None
        self._until = 0.0
        self._lock = asyncio.Lock()

    async def get(self) -> T:
        async with self._lock:
            if self._value is None or time.monotonic() >= self._until:
                self._value = await self._read()
                self._until = time.monotonic() + self._seconds
            return self._value
