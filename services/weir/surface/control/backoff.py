"""Wrong passwords slow their address down, however many connections it opens.

    wrong password   answered after a second; the pause of the address doubles, from a second to a minute
    in the pause     further passwords of the address are refused, and not compared
    right password   the address is forgotten

An address is also forgotten an hour after its last wrong password. IPv6 addresses count by their /64 network, because
one machine has all addresses of its network. Only the addresses that were wrong last are remembered; none is logged.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from time import monotonic
from typing import NamedTuple

FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_TIMER_ERROR = 0.1  # seconds: a timer may end a moment before the clock says so
_FORGET = 3600.0
_MOST_ADDRESSES = 1000


class _Wrong(NamedTuple):
    times: int
    until: float
    """when the next password is checked, by `monotonic`."""


class Backoff:
    """The wrong passwords of all addresses at one control port."""

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, _Wrong] = OrderedDict()

    def wait(self, address: str) -> int:
        """Seconds until the next password of this address is checked; 0: now."""
        found = self._wrong.get(_group(address))
        left = 0.0 if found is None else found.until - monotonic()
        return math.ceil(left) if left > _TIMER_ERROR else 0

    def note_wrong(self, address: str) -> float:
        """Note a wrong password. Return the seconds after which it is answered."""
        group, now = _group(address), monotonic()
        before = self._wrong.pop(group, None)
        count = 1 if before is None or now > before.until + _FORGET else before.times + 1
        pause = min(FIRST_PAUSE * 2.0 ** min(count - 1, 16), _LONGEST_PAUSE)
        self._wrong[group] = _Wrong(count, now + pause)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)
        return FIRST_PAUSE

    def note_right(self, address: str) -> None:
        self._wrong.pop(_group(address), None)


def _group(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
