"""Tasks for all edges, over a real Redis: one node, and a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.router.store.conftest import OpenEdge, any_redis, open_any, redis_servers
from tests.router.store.harness import TestEdge
from weir.redis.errors import UNAVAILABLE
from weir.runtime.broadcast import Broadcast, Task

__all__ = ["any_redis", "open_any", "redis_servers"]


def does(edge: TestEdge, work: Callable[[Task], Any]) -> None:
    async def async_work(task: Task) -> Any:
        found = work(task)
        if isinstance(found, Exception):
            raise found
        return found

    edge.store.broadcast.work = async_work


@pytest.fixture
async def edges(open_any: OpenEdge) -> AsyncIterator[list[TestEdge]]:
    """Three live edges that answer with their number."""
    opened = [await open_any() for _ in range(3)]
    for number, edge in enumerate(opened):
        await edge.store.stats.publish_edge({})
        does(edge, lambda task, number=number: [number, task["what"]])  # type: ignore[misc]
    yield opened


def name(edge: TestEdge) -> str:
    return edge.store.edge.decode()


async def test_every_edge_answers_whoever_asks(edges: list[TestEdge]) -> None:
    for asking in edges:
        answers = await asking.store.broadcast.ask(10.0, what="this")
        assert answers.by_edge == {name(edge): [number, "this"] for number, edge in enumerate(edges)}
        assert answers.missing == frozenset()


async def test_answers_go_to_the_task_they_belong_to(edges: list[TestEdge]) -> None:
    asked = [edge.store.broadcast.ask(10.0, what=n) for n in range(5) for edge in edges]
    for n, answers in enumerate(await asyncio.gather(*asked)):
        assert {what for _, what in answers.by_edge.values()} == {n // 3}


async def test_an_edge_that_is_late_is_missing(edges: list[TestEdge], caplog: pytest.LogCaptureFixture) -> None:
    does(edges[1], lambda task: UNAVAILABLE)
    does(edges[2], lambda task: ValueError("an id of a client"))
    caplog.set_level(logging.DEBUG)
    answers = await edges[0].store.broadcast.ask(0.2, what="this")
    assert answers.by_edge.keys() == {name(edges[0])}
    assert answers.missing == {name(edges[1]), name(edges[2])}
    (line,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert line.startswith("a task of another edge failed (ValueError in test_broadcast.py, line ")


async def test_its_own_failure_is_the_callers(edges: list[TestEdge]) -> None:
    does(edges[0], lambda task: UNAVAILABLE)
    with pytest.raises(type(UNAVAILABLE)):
        await edges[0].store.broadcast.ask(10.0, what="this")


async def test_only_live_edges_are_asked(edges: list[TestEdge]) -> None:
    await edges[2].store.leases.stop()
    answers = await edges[0].store.broadcast.ask(10.0, what="this")
    assert answers.missing == frozenset()
    assert answers.by_edge.keys() >= {name(edges[0]), name(edges[1])}


async def _nobody() -> list[bytes]:
    return []


async def _refuse(channel: bytes, message: bytes) -> None:
    raise AssertionError("nobody listens")


async def test_alone_it_needs_no_channel() -> None:
    broadcast = Broadcast("me", _nobody, _refuse, b"tasks", lambda edge: edge)
    assert (await broadcast.ask(10.0)).by_edge == {"me": None}


@pytest.mark.parametrize("turns", range(8))
async def test_a_job_that_asks_can_be_cancelled_at_any_moment(turns: int) -> None:
    """Also in the moment of the last answer. An edge waits for its jobs when it stops."""
    broadcast = Broadcast("me", _nobody, _refuse, b"tasks", lambda edge: edge)
    asking = asyncio.create_task(broadcast.ask(10.0))
    for _ in range(turns):
        await asyncio.sleep(0)
    if asking.cancel():
        with pytest.raises(asyncio.CancelledError):
            await asking
