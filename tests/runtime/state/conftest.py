"""Stores that open as an edge's do, on every kind of Redis."""

from tests.router.store.conftest import open_any

__all__ = ["open_any"]
