"""A bounded cache of two generations: nearly LRU, at the price of one dict lookup."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """Keeps the entries used last: at least `limit // 2`, at most `limit`.

    `recent` has the young generation. A hot caller may look there first, which costs no call.
    """

    __slots__ = ("_half", "_old", "recent")

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self.recent: dict[bytes, V] = {}
        self._old: dict[bytes, V] = {}

    def get(self, key: bytes) -> V | None:
        value = self.recent.get(key)
        if value is None and self._old:
            value = self._old.pop(key, None)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: bytes, value: V) -> None:
        if self._half == 0:
            return
        if len(self.recent) >= self._half and key not in self.recent:
            self._old = self.recent
            self.recent = {}
        self.recent[key] = value

    def drop(self, key: bytes) -> None:
        self.recent.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self.recent.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self.recent) + len(self._old)
