"""An operation: one command, or a SET of a body with the script that uses it, from its call to its answer.

An operation is a list, not an object: it is made once per call on the hot path.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from weir.redis.resp import as_retry

OnReply = Callable[[Any, Any], None]
Op = list[Any]
WIRE, ON_REPLY, CTX, SCRIPT, AT = range(5)
# SCRIPT is False for a plain command, None for one that must not be repeated, True for a script, or:
LATE: Final = 2  # a script whose late answer matters
LATE_ONE_KEY: Final = 3  # the same, for a script that needs one key only, as a plain command does
LATE_KINDS: Final = (LATE, LATE_ONE_KEY)
FAILED: Final = 0.0  # AT of an operation whose callback got UNAVAILABLE

# Errors that say that Redis did not execute the command, and will elsewhere, later, or after its scripts are loaded.
OTHER_NODE: Final = frozenset(("MOVED", "READONLY"))
LATER: Final = frozenset(("LOADING", "CLUSTERDOWN", "MASTERDOWN", "BUSY"))
MOVING: Final = frozenset(("ASK", "TRYAGAIN"))
NOT_EXECUTED: Final = OTHER_NODE | LATER | MOVING | {"NOSCRIPT"}


def ignore(_reply: Any, _ctx: Any) -> None:
    pass


def resolve(reply: Any, future: "asyncio.Future[Any]") -> None:
    if future.done():
        return
    if isinstance(reply, Exception):
        future.set_exception(reply)
    else:
        future.set_result(reply)


def make_retry(op: Op) -> None:
    if op[SCRIPT]:
        wire = op[WIRE]
        op[WIRE] = (*wire[:2], as_retry(wire[2])) if wire.__class__ is tuple else as_retry(wire)


def needs_its_slot(op: Op) -> bool:
    """Whether the operation can be executed only where all keys of its slot are."""
    return bool(op[SCRIPT]) and op[SCRIPT] != LATE_ONE_KEY


BODY: Final[Op] = [b"", ignore, None, False, 0.0]  # stands for the SET that precedes an operation
