"""An edge asks all edges of the fleet something, and collects their answers.

    asking edge                              Redis                      every other edge
      PUBLISH number, task ──────────► channel of all edges ──────────► works on the task
      collects ◄───────────── channel of the asking edge ◄───────────── PUBLISH number, answer

Nothing is stored, so nothing is left behind. A task or an answer that is lost, because an edge or Redis is away, is
missing when the time is over. A task may therefore arrive again after a time-out: it must be one that may be repeated.
Tasks and answers are JSON, and carry no ids of queues, keys or addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, NamedTuple

from weir.redis.errors import Unavailable
from weir.telemetry.errors import log_mistake

_log = logging.getLogger(__name__)

Task = Mapping[str, Any]
Work = Callable[[Task], Awaitable[Any]]


async def _nothing_to_do(_task: Task) -> None:
    return None


class Answers(NamedTuple):
    by_edge: dict[str, Any]
    missing: frozenset[str]
    """Live edges that did not answer in time."""


class _Collection:
    """The answers to one task."""

    def __init__(self, expected: Collection[str]) -> None:
        self.answers: dict[str, Any] = {}
        self.missing = set(expected)
        self.complete = asyncio.Event()

    def add(self, edge: str, answer: Any) -> None:
        self.answers[edge] = answer
        self.missing.discard(edge)
        if not self.missing:
            self.complete.set()


class Broadcast:
    """`work` is what this edge does with a task, its own ones included. `live_edges` names the edges of the fleet."""

    def __init__(
        self,
        edge: str,
        live_edges: Callable[[], Awaitable[list[bytes]]],
        publish: Callable[[bytes, bytes], Awaitable[Any]],
        tasks_channel: bytes,
        answers_channel: Callable[[bytes], bytes],
    ) -> None:
        self.work: Work = _nothing_to_do
        self._edge = edge
        self._live_edges = live_edges
        self._publish = publish
        self._tasks_channel = tasks_channel
        self._answers_channel = answers_channel
        self._open: dict[int, _Collection] = {}
        self._last = 0
        self._working: set[asyncio.Task[None]] = set()

    @property
    def channels(self) -> dict[bytes, Callable[[bytes], None]]:
        """The channels that this edge listens to, and who takes their messages."""
        return {self._tasks_channel: self._on_task, self._answers_channel(self._edge.encode()): self._on_answer}

    async def ask(self, limit: float, **task: Any) -> Answers:
        """Give every live edge a task, and wait for the answers for at most `limit` seconds.

        Raises Unavailable, and what this edge's own work raises.
        """
        edges = {edge.decode() for edge in await self._live_edges()} | {self._edge}
        self._last = number = self._last + 1
        collection = self._open[number] = _Collection(edges)
        try:
            if len(edges) > 1:
                await self._send(self._tasks_channel, number, task)
            collection.add(self._edge, await self.work(task))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await collection.complete.wait()
        finally:
            del self._open[number]
        return Answers(collection.answers, frozenset(collection.missing))

    async def close(self) -> None:
        for task in list(self._working):
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    async def _send(self, channel: bytes, number: int, content: Any) -> None:
        await self._publish(channel, json.dumps([self._edge, number, content]).encode())

    def _on_task(self, message: bytes) -> None:
        asker, number, task = json.loads(message)
        if asker != self._edge:
            working = asyncio.get_running_loop().create_task(self._do(asker, number, task))
            self._working.add(working)
            working.add_done_callback(self._working.discard)

    async def _do(self, asker: str, number: int, task: Task) -> None:
        try:
            answer = await self.work(task)
            await self._send(self._answers_channel(asker.encode()), number, answer)
        except Unavailable:
            pass  # the asking edge counts this edge as missing
        except Exception as error:
            log_mistake(_log, "a task of another edge failed", error)

    def _on_answer(self, message: bytes) -> None:
        edge, number, answer = json.loads(message)
        collection = self._open.get(number)
        if collection is not None:
            collection.add(edge, answer)
