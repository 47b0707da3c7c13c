import asyncio
import functools
import inspect
import shutil
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

_LIMIT = 55.0  # under pytest-timeout's, whose signal uvloop swallows


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], uvloop.Loop]]:
    """Edges run on uvloop; so do their tests."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every async test has a time limit that the loop itself keeps; `timeout` marks set another.

    Tests whose `needs` are not installed here are left out, and the summary names what is missing.
    """
    for item in items:
        missing = [word for mark in item.iter_markers("needs") for word in mark.args if shutil.which(word) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed here: {', '.join(missing)}"))
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            marker = item.get_closest_marker("timeout")
            item.obj = _limited(item.obj, marker.args[0] - 5 if marker and marker.args else _LIMIT)


def _limited(test: Callable[..., Any], limit: float) -> Callable[..., Any]:
    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> Any:
        async with asyncio.timeout(limit):
            return await test(*args, **kwargs)

    return limited
