"""Throttling: a user of the event loop that has used it for t seconds may use it again after another t.

One busy user can therefore take at most half of an edge. A process that never sleeps would also be given the processor
later by the operating system, and all its clients would wait with it. Time spent idle is not credited.
"""

from typing import Final

_COST: Final = 2.0  # seconds that one second of work takes: the work itself, and as much pause
_SHORTEST_PAUSE: Final = 0.001  # the resolution of the loop's timers


def free_at(before: float, began: float, ended: float) -> float:
    """When a user may use the loop again: it was free at `before`, and has worked from `began` to `ended`."""
    return max(before, began) + _COST * (ended - began)


def pause(free_at: float, now: float) -> float:
    """Seconds until then. A shorter pause than a timer can make is added to the next one."""
    left = free_at - now
    return left if left >= _SHORTEST_PAUSE else 0.0
