"""Work and rest: what may keep a loop busy for as long as somebody likes rests for as long as it has worked.

The system makes a process that never sleeps wait for a core, and everybody whose answers come from it with it.
"""

from typing import Final

WORK_AND_REST: Final = 2.0  # for each second of work
LEAST_REST: Final = 0.001  # the resolution of the loop's timers


def rested_at(before: float, began: float, ended: float) -> float:
    """When one that would have rested at `before`, and has worked since then, has rested. Idleness is no credit."""
    return max(before, began) + WORK_AND_REST * (ended - began)


def rest(rested: float, now: float) -> float:
    """Seconds from now on; little debts are kept until they are worth a timer."""
    left = rested - now
    return left if left >= LEAST_REST else 0.0
