import asyncio
import functools
import inspect
import shutil
import signal
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

pytest_plugins = ["tests.support.progress"]

_OTHER_COMMANDS = ("all", "cluster", "soak", "spark")
_LIMIT = 55.0  # under pytest-timeout's, whose signal uvloop swallows


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell ignores SIGINT for what it starts in the background, and all processes below would ignore it, too. Some
    # tests interrupt processes.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], uvloop.Loop]]:
    """Edges run on uvloop; so do their tests."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every async test has a time limit that the loop itself keeps; `timeout` marks set another.

    Tests whose `needs` are not installed here are left out, and the summary names what is missing.
    """
    _leave_out(config, items)
    for item in items:
        missing = [word for mark in item.iter_markers("needs") for word in mark.args if shutil.which(word) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed here: {', '.join(missing)}"))
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            marker = item.get_closest_marker("timeout")
            item.obj = _limited(item.obj, marker.args[0] - 5 if marker and marker.args else _LIMIT)


def _leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of the other commands: make test-all, test-cluster, test-pipeline, soak.

    `-m` selects them, and a test that the command line names by its whole id always runs.
    """
    if config.option.markexpr or any("::" in argument for argument in config.args):
        return
    others = [item for item in items if any(item.get_closest_marker(name) for name in _OTHER_COMMANDS)]
    config.hook.pytest_deselected(items=others)
    left_out = set(others)
    items[:] = [item for item in items if item not in left_out]


def _limited(test: Callable[..., Any], limit: float) -> Callable[..., Any]:
    @functools.wraps(test)
    async def limited(*args: Any, **kwargs: Any) -> Any:
        async with asyncio.timeout(limit):
            return await test(*args, **kwargs)

    return limited
