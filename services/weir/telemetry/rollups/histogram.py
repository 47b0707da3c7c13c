"""Histograms with logarithmic buckets.

Bucket i counts the values v with 2^(i/8) ≤ v < 2^((i+1)/8); bucket −1 counts the values below 1. All buckets are
equally wide on a logarithmic scale, so a quantile has the same relative error, at most 4.5 %, from microseconds to
months. Histograms of several edges and intervals add up without loss, bucket by bucket.

Values are microseconds or messages. A value above the last bucket counts in the last bucket.
"""

from collections.abc import Iterable, Mapping
from math import ceil, floor, log2
from typing import Final

PER_OCTAVE: Final = 8
LAST: Final = 44 * PER_OCTAVE - 1  # 2^44 µs are 203 days
_LIMIT: Final = 2.0**44

Buckets = Mapping[int, int]


def bucket(value: float) -> int:
    if value < 1:
        return -1
    return floor(log2(value) * PER_OCTAVE) if value < _LIMIT else LAST


def bounds(index: int) -> tuple[float, float]:
    """The lowest value of a bucket, and the first value above it."""
    if index < 0:
        return 0.0, 1.0
    return 2.0 ** (index / PER_OCTAVE), 2.0 ** ((index + 1) / PER_OCTAVE)


def middle(index: int) -> float:
    """The value that stands for a bucket: its geometric middle; 0 for the bucket of values below 1."""
    return 0.0 if index < 0 else 2.0 ** ((index + 0.5) / PER_OCTAVE)


def quantile(buckets: Buckets, q: float) -> float | None:
    """The value that a share `q` of all values does not exceed. None: the histogram is empty."""
    left = max(1, ceil(q * sum(buckets.values())))
    for index in sorted(buckets):
        left -= buckets[index]
        if left <= 0:
            return middle(index)
    return None


def merge(histograms: Iterable[Buckets]) -> dict[int, int]:
    """Add histograms up."""
    total: dict[int, int] = {}
    for buckets in histograms:
        for index, count in buckets.items():
            total[index] = total.get(index, 0) + count
    return total


def coarsen(buckets: Buckets, width: int) -> dict[int, int]:
    """Add up `width` neighbouring buckets in the middle one of them. The counts stay exact."""
    return merge(
        {index if index < 0 else index - index % width + width // 2: count} for index, count in buckets.items()
    )


class Histogram:
    """A histogram that counts values on a hot path: one `observe` takes a logarithm and an increment of a list."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts = [0] * (LAST + 2)  # bucket −1 is the last element, as Python counts from the end

    def observe(self, value: float) -> None:
        if value < 1:
            self._counts[-1] += 1
        elif value < _LIMIT:
            self._counts[int(log2(value) * 8)] += 1
        else:
            self._counts[LAST] += 1

    def buckets(self) -> dict[int, int]:
        """The counts since the start, without empty buckets."""
        counts = self._counts
        found = {index: count for index, count in enumerate(counts) if count}
        if LAST + 1 in found:
            found[-1] = found.pop(LAST + 1)
        return found
