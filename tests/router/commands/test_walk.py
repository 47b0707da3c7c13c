"""How many calls a SEND takes through an edge, from its block's arrival to the hand-over of its answer.

Run with `-s` to see each call. The count is the same on every machine, so it can be compared between versions.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.router.fleet import Fleet
from weir.wire.smp.replies import OK

Call = tuple[str, str]  # module, function
MOST_CALLS = 17  # in weir.router and weir.redis; 23 when handlers were generic and looked up everything by calls


def recorder(calls: list[Call]) -> Callable[[FrameType, str, Any], None]:
    """Record calls of Weir's functions in two parts: the arrival of a block, and the store's answer to the SEND."""
    ends: list[FrameType] = []  # the frame with which the present part ends

    def record(frame: FrameType, event: str, _: Any) -> None:
        if event == "return":
            if ends and frame is ends[0]:
                ends.clear()
            return
        path = frame.f_code.co_filename
        if event != "call" or "/services/weir/" not in path:
            return
        module = path.partition("/services/")[2].removesuffix(".py").replace("/", ".")
        name = frame.f_code.co_name
        begins = (module.startswith("weir.router.session.") and name == "on_blocks") or (
            module == "weir.router.store.messages" and name == "_sent"
        )
        if not ends and begins:
            ends.append(frame)
        if ends:
            calls.append((module, name))

    return record


async def test_the_walk_of_a_send(fleet: Fleet) -> None:
    r, s = await fleet.client(0), await fleet.client(1)
    queue = await r.new(secure=True)
    for _ in range(2):  # credentials and secrets are cached after the first
        assert await s.send(queue, b"1") == OK()
    calls: list[Call] = []
    sys.setprofile(recorder(calls))
    try:
        assert await s.send(queue, b"1") == OK()
    finally:
        sys.setprofile(None)
    assert ("weir.router.session.outgoing", "add") in calls
    rooms = [call for call in calls if call[0].startswith(("weir.router.", "weir.redis."))]
    print(f"\n{len(calls)} calls over {len({module for module, _ in calls})} modules:")
    print(f"{len(rooms)} in router and redis, over {len({module for module, _ in rooms})} modules")
    for module, name in calls:
        print(f"  {module}.{name}")
    assert len(rooms) <= MOST_CALLS, "more calls than the walk in ARCHITECTURE.md"
