"""The walk through what is ready for a service: queues with messages, or notifiers with notifications.

    takeover ──► ready_in: partition 3: 1, partition 17: 40 ──► step: pages of 3 and 17 at the same time ──► … ──► ended

The takeover's answer says how much is ready in each partition. Partitions in which nothing is ready are never asked:
what becomes ready there later goes to the service's owner at once. One step asks for about one page in all, from as
many partitions as that takes. The calls of a step leave together, so a step costs one round trip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from weir.redis.errors import Unavailable

_SHARES = 8  # a page that many partitions fill is divided by this, so that one call blocks Redis only briefly


class Page(Protocol):
    @property
    def cursor(self) -> int | None:
        """The beginning of the partition's next page. None after the last page."""


P = TypeVar("P", bound=Page)


class ReadyWalk:
    def __init__(self, ready_in: Mapping[int, int], page: int) -> None:
        self._left = dict(ready_in)  # partition → how much is probably left there
        self._cursors = dict.fromkeys(ready_in, 0)
        self._page = page

    @property
    def ended(self) -> bool:
        return not self._cursors

    async def step(self, fetch: Callable[[int, int, int], Awaitable[P]]) -> tuple[list[P], bool]:
        """Fetch the next pages with `fetch(partition, cursor, size)`. Return them, and whether Redis answered all.

        A page without an answer is fetched again by a later step.
        """
        size = max(1, self._page // min(len(self._left), _SHARES))
        partitions = self._next(size)
        answers = await asyncio.gather(
            *(fetch(partition, self._cursors[partition], size) for partition in partitions), return_exceptions=True
        )
        pages: list[P] = []
        for partition, answer in zip(partitions, answers, strict=True):
            if isinstance(answer, BaseException):
                if not isinstance(answer, Unavailable):
                    raise answer
                continue
            pages.append(answer)
            if answer.cursor is None:
                del self._cursors[partition], self._left[partition]
            else:
                self._cursors[partition] = answer.cursor
                self._left[partition] = max(1, self._left[partition] - size)
        return pages, len(pages) == len(partitions)

    def _next(self, size: int) -> list[int]:
        """Return the partitions whose next pages make up about one page."""
        chosen: list[int] = []
        expected = 0
        for partition, left in self._left.items():
            if expected >= self._page:
                break
            chosen.append(partition)
            expected += min(left, size)
        return chosen
