"""How often something happened in the last seconds.

Every edge measures its own rate over a window of the same length, on its own monotonic clock. The sum of the edges'
rates is therefore the rate of the fleet, whoever asks and whenever. The difference of two readings of the fleet's
counters would not be: edges save their counters at different moments.
"""

from __future__ import annotations

from collections import deque

SAMPLE_INTERVAL = 1.0  # seconds between two samples
_SAMPLES = 4  # the window is three intervals long


class Rate:
    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SAMPLES)

    def sample(self, now: float, count: int) -> None:
        """`count` is what was counted since the start. Call this every SAMPLE_INTERVAL."""
        self._samples.append((now, count))

    def per_second(self) -> float:
        """The rate between the oldest and the newest sample."""
        if len(self._samples) < 2:
            return 0.0
        (began, before), (ended, after) = self._samples[0], self._samples[-1]
        return (after - before) / (ended - began)
