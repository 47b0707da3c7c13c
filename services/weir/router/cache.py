"""A bounded cache of two generations: nearly LRU, at the price of one dict lookup."""

from __future__ import annotations

from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """Keeps the entries used last: at least `limit // 2`, at most `limit`."""

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._young: dict[bytes, V] = {}
        self._old: dict[bytes, V] = {}

    def get(self, key: bytes) -> V | None:
        value = self._young.get(key)
        if value is None and self._old:
            value = self._old.pop(key, None)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: bytes, value: V) -> None:
        if self._half == 0:
            return
        if len(self._young) >= self._half and key not in self._young:
            self._old = self._young
            self._young = {}
        self._young[key] = value

    def drop(self, key: bytes) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
