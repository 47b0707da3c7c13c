import asyncio

import pytest

from weir.surface.cached import Cached


class Reading:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> int:
        self.count += 1
        await asyncio.sleep(0.01)
        return self.count


async def test_concurrent_callers_share_one_reading() -> None:
    reading = Reading()
    cached = Cached(reading, 60.0)
    assert await asyncio.gather(*(cached.get() for _ in range(50))) == [1] * 50
    assert await cached.get() == 1


async def test_an_old_value_is_read_again() -> None:
    cached = Cached(Reading(), 0.0)
    assert [await cached.get(), await cached.get()] == [1, 2]


async def test_a_failure_is_not_kept() -> None:
    failures = [ValueError("once")]

    async def read() -> int:
        if failures:
            raise failures.pop()
        return 7

    cached = Cached(read, 60.0)
    with pytest.raises(ValueError, match="once"):
        await cached.get()
    assert await cached.get() == 7
